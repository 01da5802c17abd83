"""Whether the data can be trusted: loads, their trends and anomalies, and the constraints of the table."""

from lakeview.views.quality import anomalies as anomalies
from lakeview.views.quality import column_loads as column_loads
from lakeview.views.quality import column_states as column_states
from lakeview.views.quality import constraints as constraints
from lakeview.views.quality import lateness as lateness
from lakeview.views.quality import loads as loads
from lakeview.views.quality import sudden_changes as sudden_changes
from lakeview.views.quality import trends as trends
from lakeview.views.quality import verdicts as verdicts
