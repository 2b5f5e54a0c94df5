//! Setters that several options have in common: each is written once, with its documentation, and becomes a method of
//! every type that has it.

/// What can be said of a sandbox that is about to start.
macro_rules! start_setters {
    () => {
        /// The size of the machine: `small`, `default`, `large` or `xlarge`.
        pub fn kind(mut self, kind: impl Into<$crate::models::SandboxType>) -> Self {
            self.request = self.request.kind(kind);
            self
        }

        /// When it stops by itself; never is [`no_ttl`](Self::no_ttl).
        pub fn ttl(mut self, ttl: impl Into<$crate::Ttl>) -> Self {
            self.request = self.request.ttl_seconds(ttl.into().patch());
            self
        }

        /// Lets it run until it is stopped.
        pub fn no_ttl(self) -> Self {
            self.ttl($crate::Ttl::Never)
        }

        /// Sets a variable that every command in it sees. At most 100, together at most 64 KB; a name is a letter or
        /// `_` and up to 127 letters, digits and `_`; the service's own names are refused. Values are never printed.
        pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.request.env.get_or_insert_default().insert(name.into(), value.into());
            self
        }

        /// Sets several variables, as [`env`](Self::env) does for one.
        pub fn envs<I, K, V>(self, variables: I) -> Self
        where
            I: IntoIterator<Item = (K, V)>,
            K: Into<String>,
            V: Into<String>,
        {
            variables.into_iter().fold(self, |options, (name, value)| options.env(name, value))
        }

        /// The stored environment to start with, by name or id; not together with [`no_env`](Self::no_env).
        pub fn environment(mut self, environment: impl Into<String>) -> Self {
            self.request = self.request.environment(environment);
            self
        }

        /// Starts with no environment and no sign-ins at all; it can never have them later.
        pub fn no_env(mut self) -> Self {
            self.request = self.request.no_env(true);
            self
        }

        /// Fails at once when no machine is free, instead of waiting for one.
        pub fn fail_fast(mut self) -> Self {
            self.request = self.request.fail_fast(true);
            self
        }

        /// Checks what the request does not check itself.
        pub(crate) fn check(&self) -> $crate::Result<()> {
            use $crate::sandboxer::given;
            given::filled("type", self.request.kind.as_ref().map(|kind| kind.as_str()))?;
            given::environment(self.request.environment.as_deref(), self.request.no_env)?;
            given::wait_limit(self.waiting.limit)
        }
    };
}

/// Whether and how long to wait for what `$what` says; `$limit` is how long unless something is set.
macro_rules! waiting_setters {
    ($what:literal, $limit:literal) => {
        #[doc = concat!("Whether to wait until it is ", $what, " (the default) or return once the service has taken it on.")]
        pub fn wait(mut self, wait: bool) -> Self {
            self.waiting.wait = wait;
            self.waiting.setup &= wait;
            self
        }

        #[doc = concat!("How long to wait in all for it to be ", $what, ", ", $limit, " unless set here or by the call's total limit. 0 is refused; [`wait(false)`](Self::wait) does not wait.")]
        pub fn wait_limit(mut self, limit: std::time::Duration) -> Self {
            self.waiting.limit = Some(limit);
            self
        }
    };
}

/// What can be said of a sandbox that is made.
macro_rules! made_setters {
    () => {
        /// The name shown to people, not empty, cut to 120 characters; set right after it is made.
        pub fn name(mut self, name: impl Into<String>) -> Self {
            self.name = Some(name.into());
            self
        }

        /// Whether its commands and processes are recorded (default: yes, or as the sandbox it is a copy of). Without it
        /// there are no logs to read.
        pub fn monitoring(mut self, record: bool) -> Self {
            self.request = self.request.monitoring(record);
            self
        }
    };
}

pub(super) use {made_setters, start_setters, waiting_setters};
