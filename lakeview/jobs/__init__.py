"""Jobs of several users on one engine in a process of its own: queue, client, messages and the process's loop.

They know no engine: the process runs a module that has one, `lakeview.spark.jobs`. Importing them is light, since every
process of jobs, and each program that only might start one, does.
"""

from lakeview.jobs.client import Answer, Job, SparkJobs, is_installed
from lakeview.jobs.messages import JobCancelledError, Request
from lakeview.jobs.progress import Progress, State

__all__ = ["Answer", "Job", "JobCancelledError", "Progress", "Request", "SparkJobs", "State", "is_installed"]
