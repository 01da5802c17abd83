"""Jobs of several users on one engine in a process of its own: queue, client, messages and the process's loop.

They know no engine: the process runs a module that has one, `lakeview.spark.jobs`. Importing them is light, since every
process of jobs, and each program that only might start one, does.
"""

from lakeview.jobs.client import SparkJobs, is_installed
from lakeview.jobs.job import Answer, Job, Progress, State
from lakeview.jobs.messages import JobCancelledError, Request

__all__ = ["Answer", "Job", "JobCancelledError", "Progress", "Request", "SparkJobs", "State", "is_installed"]
