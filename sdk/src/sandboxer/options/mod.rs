//! What can be said when a sandbox is created, copied, brought back, changed or stopped: one module a verb.

mod create;
mod fork;
mod resume;
mod setters;
mod stop;
#[cfg(test)]
mod tests;
mod ttl;
mod update;
mod waiting;

pub use create::Create;
pub use fork::Fork;
pub use resume::Resume;
pub use stop::Stop;
pub use ttl::Ttl;
pub use update::Update;
pub(crate) use update::check_name;
pub(crate) use waiting::Waiting;
