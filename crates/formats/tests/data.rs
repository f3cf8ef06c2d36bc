//! The data sets read whole and field by field. They are found through `THREADKEEP_DATA`.
