"""Charts: a view's frame to Altair charts in lakeview's theme, light or dark. Addressed by module."""

from lakeview.charts import columns as columns
from lakeview.charts import commit_marks as commit_marks
from lakeview.charts import compare as compare
from lakeview.charts import distributions as distributions
from lakeview.charts import event_labels as event_labels
from lakeview.charts import files as files
from lakeview.charts import lake as lake
from lakeview.charts import lanes as lanes
from lakeview.charts import lifetimes as lifetimes
from lakeview.charts import marks as marks
from lakeview.charts import palette as palette
from lakeview.charts import partition_maps as partition_maps
from lakeview.charts import partitions as partitions
from lakeview.charts import pipelines as pipelines
from lakeview.charts import pruning as pruning
from lakeview.charts import quality as quality
from lakeview.charts import retention as retention
from lakeview.charts import ribbon as ribbon
from lakeview.charts import sharing as sharing
from lakeview.charts import theme as theme
from lakeview.charts import timeline as timeline
