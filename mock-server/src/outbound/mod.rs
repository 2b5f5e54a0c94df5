//! Requests of the server's own: to webhook endpoints and to collectors of telemetry, and to no other place.

mod addresses;
mod post;

pub(crate) use self::{
    addresses::{Allowed, check},
    post::{Posted, Sender},
};
