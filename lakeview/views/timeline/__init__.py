"""What happened, commit by commit: operations, events, branches, writers, and lifetimes of files."""

from lakeview.views.timeline import branches as branches
from lakeview.views.timeline import commits as commits
from lakeview.views.timeline import downsampling as downsampling
from lakeview.views.timeline import events as events
from lakeview.views.timeline import lifetimes as lifetimes
from lakeview.views.timeline import live_intervals as live_intervals
from lakeview.views.timeline import loads as loads
from lakeview.views.timeline import readability as readability
from lakeview.views.timeline import trend as trend
from lakeview.views.timeline import writers as writers
