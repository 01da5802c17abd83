"""Jobs on Spark of this server: one process for all visitors, who take turns."""

from __future__ import annotations

import atexit
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lakeview.app.query.answers import Answer
from lakeview.jobs import Progress, Request, SparkJobs


@st.cache_resource(show_spinner=False)
def jobs() -> SparkJobs:
    """This server's jobs; they end with it."""
    spark_jobs = SparkJobs()
    atexit.register(spark_jobs.close)
    return spark_jobs


def run(request: Request, on_wait: Callable[[Progress], object]) -> Answer:
    """The rows of a job, and what was counted. Any LakeviewError; `on_wait` may raise, which cancels the job."""
    visit = get_script_run_ctx()
    return Answer(*jobs().run(request, user="" if visit is None else visit.session_id, on_wait=on_wait))
