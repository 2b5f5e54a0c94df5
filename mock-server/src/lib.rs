//! A local sandbox service that really runs commands.
