//! One call of a generated method, from its checks to its answer.

use super::{Context, Shared, failure, ids, plan::Plan, tries::Tries};
use crate::{
    call::CallOptions,
    command::exports,
    error::{Error, ErrorKind, Result, envelope},
    generated::{
        dialects::{CommandVariables, Dialect},
        engine,
        models::CommandRequest,
        operations::Operation,
    },
    stream::ByteBody,
    wire::{
        InvalidField,
        decode::{Problem, Undecoded},
    },
};
use progenitor_client::{ByteStream, Error as EngineError, ResponseValue};
use std::{sync::Arc, time::Duration};

/// A call that has begun: its limits run.
#[derive(Debug)]
pub(crate) struct Call {
    context: Context,
}

impl Call {
    /// Begins a call whose tries are noted in `tries`; refuses ids that cannot stand in a path.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        options: &Arc<CallOptions>,
        tries: Tries,
        operation: Operation,
        path_ids: &[(&'static str, &str)],
    ) -> Result<Self> {
        let plan = Plan::of(operation, path_ids, options.clone(), shared.clock().elapsed());
        shared.check_open().map_err(|error| plan.label(error))?;
        let dialect = shared.dialect();
        if !dialect.has(operation) {
            let message = format!("{dialect} does not have the operation {operation}");
            return Err(plan.label(Error::new(ErrorKind::Unsupported, "unsupported_operation", message)));
        }
        for (name, id) in path_ids {
            // A refused id is no one's, so the error does not carry it.
            ids::check(name, id).map_err(|error| error.with_operation(operation))?;
        }
        Ok(Self { context: Context::noting(shared.clone(), plan, tries) })
    }

    /// Which service is spoken to.
    pub(crate) fn dialect(&self) -> Dialect {
        self.context.shared.dialect()
    }

    /// Refuses a request whose own check failed.
    pub(crate) fn validated(&self, checked: Result<(), InvalidField>) -> Result<()> {
        checked
            .map_err(|invalid| self.context.plan.label(Error::invalid_input(&invalid.field, invalid.problem)))
    }

    /// Fits the time limits to that of the command, in seconds, that the call runs.
    pub(crate) fn with_command_limit(mut self, seconds: Option<i64>) -> Self {
        if let Some(seconds) = seconds {
            let seconds = u64::try_from(seconds).unwrap_or_default();
            Arc::make_mut(&mut self.context.plan).command_limit = Some(Duration::from_secs(seconds));
        }
        self
    }

    /// Writes a command's variables in front of it where the service takes no others. The request was validated before, so
    /// that names are names and values have no NUL.
    pub(crate) fn with_variables(&self, mut request: CommandRequest) -> Result<CommandRequest> {
        if self.dialect().info().command_variables == CommandVariables::Exports
            && let Some(variables) = request.env.take().filter(|variables| !variables.is_empty())
        {
            request.command = exports(variables.iter(), &request.command);
            self.validated(request.validate_for(self.dialect()))?;
        }
        Ok(request)
    }

    /// The generated client for this call.
    pub(crate) fn engine(&self) -> engine::Client {
        let shared = &self.context.shared;
        engine::Client::new_with_client(shared.base().as_str(), shared.http().clone(), self.context.clone())
    }

    /// The answer, or why there is none.
    pub(crate) fn finish<T>(&self, result: Result<ResponseValue<T>, EngineError<()>>) -> Result<T> {
        result.map(ResponseValue::into_inner).map_err(|error| self.failed(error))
    }

    /// The answer's body, to be read as it comes.
    pub(crate) fn finish_stream(
        &self,
        result: Result<ResponseValue<ByteStream>, EngineError<()>>,
    ) -> Result<ByteBody> {
        match result {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                Ok(ByteBody::new(response.into_inner_stream(), self.context.clone(), status, headers))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: EngineError<()>) -> Error {
        if let Some(failure) = self.context.take_failure() {
            return failure;
        }
        let unexpected = |message: String| Error::new(ErrorKind::Unexpected, "unexpected_response", message);
        let error = match error {
            EngineError::InvalidRequest(problem) | EngineError::Custom(problem) => {
                return self.context.plan.label(Error::invalid_input("request", problem));
            }
            EngineError::UnexpectedResponse(response) => {
                let error = match response.extensions().get::<Undecoded>() {
                    Some(Undecoded { body, problem: Problem::Refused }) => {
                        let body = self.context.shared.key().redact(body.clone());
                        failure::denied_success(response.status(), response.headers(), &body)
                    }
                    Some(Undecoded { problem, .. }) => {
                        let operation = self.context.plan.name();
                        unexpected(format!("the answer to {operation} cannot be read: {problem}"))
                    }
                    None => {
                        unexpected("the answer has a status that this operation does not have".to_owned())
                    }
                };
                let id = error.request_id().map(str::to_owned);
                let id = id.or_else(|| envelope::request_id(response.headers()));
                error.with_status(response.status().as_u16()).with_request_id(id)
            }
            EngineError::InvalidResponsePayload(_, error) => {
                unexpected(format!("the answer cannot be read: {error}"))
            }
            EngineError::CommunicationError(error)
            | EngineError::InvalidUpgrade(error)
            | EngineError::ResponseBodyError(error) => {
                unexpected("the answer cannot be read".to_owned()).with_source(error.without_url())
            }
            EngineError::ErrorResponse(response) => {
                unexpected("the answer is an error".to_owned()).with_status(response.status().as_u16())
            }
        };
        let delivery = self.context.tries().unusable(self.context.plan.repeat);
        self.context.plan.label(error.with_delivery(delivery).with_attempts(self.context.attempts()))
    }
}
