//! Exports an account's telemetry to its collector, for as long as the server runs: gauges every minute, and what happens
//! to sandboxes as it happens.

mod export;
mod gauges;
mod otlp;

use std::{ops::ControlFlow, sync::Arc};

pub(crate) use self::export::{PORTS, trial};
use crate::{
    app::App,
    deliveries::{Busy, Lanes, REST},
    store::{Order, StoreError, Writer, typed},
    world::{
        telemetry::{self, GAUGES, GAUGES_EVERY, Telemetry, Verdict, WAITING},
        time::Millis,
    },
};

/// Exports what is due, now and whenever something happens.
pub(crate) async fn keep_exporting(app: Arc<App>) {
    let lanes = Arc::new(Lanes::default());
    lanes.keep_filled(&app, &app.telemetry_changed, || begin_what_is_due(&app, &lanes)).await;
}

/// Starts every export that is due and says when the next one is.
fn begin_what_is_due(app: &Arc<App>, lanes: &Arc<Lanes>) -> Result<Option<Millis>, StoreError> {
    let now = app.now();
    let mut next: Option<Millis> = None;
    let mut later = |at: Millis| next = Some(next.map_or(at, |next| next.min(at)));
    let mut of_gauges = Vec::new();
    let accounts = app.read(|tx| {
        typed::rows(tx, GAUGES, typed::after_prefix(GAUGES).as_deref(), Order::Ascending, |key, account| {
            let at = key[GAUGES.len()..].split('/').next().and_then(|at| at.parse().ok()).unwrap_or(now);
            if at > now {
                later(at);
                return ControlFlow::Break(());
            }
            of_gauges.push(account.to_owned());
            ControlFlow::Continue(())
        })?;
        let mut accounts = Vec::new();
        for account in typed::next_parts(tx, WAITING)? {
            let collector: Option<Telemetry> = typed::get(tx, &account)?;
            accounts.push((collector.and_then(|collector| collector.resume_at), account));
        }
        Ok::<_, StoreError>(accounts)
    })?;
    for account in of_gauges {
        if let Some(busy) = lanes.enter(&format!("gauges/{account}")) {
            app.tasks.spawn(export_gauges(app.clone(), account, busy));
        }
    }
    for (resume_at, account) in accounts {
        match resume_at {
            Some(at) if at > now => later(at),
            _ => {
                if let Some(busy) = lanes.enter(&format!("logs/{account}")) {
                    app.tasks.spawn(export_happenings(app.clone(), account, busy));
                }
            }
        }
    }
    Ok(next)
}

async fn export_gauges(app: Arc<App>, account: String, _busy: Busy) {
    let exported = async {
        let Some(collector) = app.read(|tx| typed::get::<Telemetry>(tx, &account))? else { return Ok(()) };
        // Found due before the lane was taken, and exported until it was left.
        if collector.gauges_at > app.now() {
            return Ok(());
        }
        let Some(answered) = export::gauges(&app, &collector).await else { return Ok(()) };
        settle(&app, &collector, |collector, _, now| {
            let every = Millis::try_from(GAUGES_EVERY.as_millis()).unwrap_or(Millis::MAX);
            // A server that was down for an hour owes one export and not sixty.
            let missed = (now - collector.gauges_at).max(0) / every;
            collector.gauges_at += every * (missed + 1);
            collector.note(&answered.verdict, now);
            Ok(())
        })
    };
    rest_if_failed(&app, exported.await).await;
}

async fn export_happenings(app: Arc<App>, account: String, _busy: Busy) {
    let exported = async {
        loop {
            let (collector, batch) = app.read(|tx| {
                let collector: Option<Telemetry> = typed::get(tx, &account)?;
                Ok::<_, StoreError>((collector, telemetry::next_batch(tx, &account)?))
            })?;
            let Some(collector) = collector else {
                return app.write(|tx| telemetry::drop_queue(tx, &account));
            };
            if batch.is_empty() || collector.resume_at.is_some_and(|at| at > app.now()) {
                return Ok(());
            }
            let Some(answered) = export::happenings(&app, &collector, &batch).await else { return Ok(()) };
            let Verdict { is_temporary, ref error, .. } = answered.verdict;
            let goes_on = error.is_none() || !is_temporary;
            settle(&app, &collector, |collector, tx, now| {
                collector.settle(tx, batch, &answered.verdict, now)
            })?;
            if !goes_on {
                return Ok(());
            }
        }
    };
    rest_if_failed(&app, exported.await).await;
}

/// Notes what came of an export, unless the account has set another collector meanwhile, or none.
fn settle(
    app: &App,
    exported_to: &Telemetry,
    change: impl FnOnce(&mut Telemetry, &mut dyn Writer, Millis) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    app.write(|tx| match typed::get::<Telemetry>(tx, &exported_to.account)? {
        Some(mut now) if now.setting == exported_to.setting => {
            change(&mut now, tx, app.now())?;
            typed::put(tx, &now)
        }
        _ => Ok(()),
    })
}

async fn rest_if_failed(app: &App, exported: Result<(), StoreError>) {
    if let Err(error) = exported {
        tracing::error!(%error, "telemetry could not be exported");
        app.sleep(REST).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Setting;

    #[tokio::test]
    async fn what_was_found_due_before_it_was_exported_is_not_exported_again() {
        let set = Setting::new();
        let app = &set.app;
        let now = app.now();
        let mut collector = Telemetry {
            account: "a".into(),
            endpoint: "http://127.0.0.1:9".into(),
            headers: Default::default(),
            setting: "s".into(),
            created_at: now,
            gauges_at: now + 1,
            last_export_at: None,
            last_error: None,
            failures: 0,
            resume_at: None,
        };
        let lanes = Arc::new(Lanes::default());
        let exported = async |collector: &Telemetry| {
            set.write(|tx| typed::put(tx, collector));
            export_gauges(app.clone(), "a".into(), lanes.enter("gauges/a").unwrap()).await;
            let after = app.read(|tx| typed::get::<Telemetry>(tx, "a")).unwrap().unwrap();
            (after.gauges_at, after.last_error.is_some())
        };
        assert_eq!(exported(&collector).await, (now + 1, false));
        // Due, and nobody is there.
        collector.gauges_at = now;
        assert_eq!(exported(&collector).await, (now + 60_000, true));
    }
}
