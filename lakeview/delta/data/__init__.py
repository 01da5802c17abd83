"""What the log says about data: schemas, partition values, statistics, and the rows behind them."""
