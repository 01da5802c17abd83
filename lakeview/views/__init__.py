"""Views: snapshots and frames to frames that answer one question each. They know no format and no clock.

A folder for each question, addressed by module: `views.timeline.commits.timeline(...)`.
"""

from lakeview.views import audit as audit
from lakeview.views import compare as compare
from lakeview.views import data as data
from lakeview.views import engines as engines
from lakeview.views import files as files
from lakeview.views import first_lines as first_lines
from lakeview.views import health as health
from lakeview.views import lake as lake
from lakeview.views import overview as overview
from lakeview.views import partitions as partitions
from lakeview.views import pipelines as pipelines
from lakeview.views import pruning as pruning
from lakeview.views import quality as quality
from lakeview.views import retention as retention
from lakeview.views import schema as schema
from lakeview.views import sharing as sharing
from lakeview.views import sums as sums
from lakeview.views import thresholds as thresholds
from lakeview.views import timeline as timeline
from lakeview.views import units as units
from lakeview.views import values as values
from lakeview.views.schema.diff import diff_schemas as diff_schemas
