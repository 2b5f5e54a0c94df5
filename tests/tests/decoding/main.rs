//! What the client makes of answers as they are described, of older and newer ones, and of broken ones: the corpus below
//! `tests/fixtures`, replayed over loopback to both twins.

mod answers;
mod corpus;
mod streams;
mod sweep;
mod verbs;
mod webhooks;
mod wire;
