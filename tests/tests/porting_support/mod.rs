//! Reading docs/porting.md: its tables, the Python names there and the names here.

pub(crate) mod python;
pub(crate) mod resolve;
pub(crate) mod tables;
