//! Event streams over scripted connections and pages, on a clock that the test moves.

mod ends;
mod pages;
mod script;
mod streams;
mod ways;
