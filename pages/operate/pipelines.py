"""Pipelines: what ran, what it made, which rows failed, and which table version came from which."""

import streamlit as st

from lakeview.app import errors
from lakeview.app.components import card
from lakeview.app.pipelines import lineage, panels, run

answer = st.container()  # the answer stands above the controls of what it is about
with errors.messages(here="pipelines"):
    look = panels.chosen_records()
    if look is not None:
        runs = look.runs()
        with answer:
            panels.sentences(runs)
        with card("Runs", panels.RUNS_NOTE, key="runs-card"):
            run_id = panels.chosen_run(runs)
        with errors.messages(here="pipelines"), card("Steps", run.STEPS_NOTE, key="steps-card"):
            run.steps(look, run_id)
        with errors.messages(here="pipelines"), card("Expectations", run.EXPECTATIONS_NOTE, key="expectations-card"):
            run.expectations(look, run_id)
        with errors.messages(here="pipelines"), card("Lineage", lineage.NOTE, key="lineage-card"):
            lineage.draw(look, run_id)
        panels.download(look)
