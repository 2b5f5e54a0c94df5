//! Brings deliveries to webhook endpoints, for as long as the server runs.
//!
//! Each endpoint has a lane for first tries, which go one after the other in the order of what they tell of, and a few
//! places for further tries, which wait for nobody and hold nobody up. What is to be done is in the store alone: a lane
//! that is cut off in a try has not tried.

mod attempt;
mod lanes;

use std::sync::Arc;

use tokio::sync::Notify;

pub(crate) use self::{
    attempt::PORTS,
    lanes::{Busy, Lanes, REST},
};
use crate::{
    app::App,
    store::{StoreError, typed},
    world::{
        deliveries::{self, AGAIN, Delivery, FIRST, Progress},
        time::Millis,
    },
};

/// How many further tries of one endpoint are under way at once.
const AGAIN_AT_ONCE: usize = 4;

/// Delivers what is due, now and whenever something happens.
pub(crate) async fn keep_delivering(app: Arc<App>) {
    // A change of the endpoints makes nothing due.
    let (lanes, unchanged) = (Arc::new(Lanes::default()), Notify::new());
    let begin = || {
        let next = begin_what_is_due(&app, &lanes);
        prune(&app);
        next
    };
    lanes.keep_filled(&app, &unchanged, begin).await;
}

/// Starts every try that is due and says when the next one is.
fn begin_what_is_due(app: &Arc<App>, lanes: &Arc<Lanes>) -> Result<Option<Millis>, StoreError> {
    let now = app.now();
    let (firsts, agains) = app.read(|tx| {
        let mut agains = Vec::new();
        for endpoint in typed::next_parts(tx, AGAIN)? {
            agains.extend(deliveries::next_again(tx, &endpoint, AGAIN_AT_ONCE)?);
        }
        Ok::<_, StoreError>((typed::next_parts(tx, FIRST)?, agains))
    })?;
    for endpoint in firsts {
        if let Some(busy) = lanes.enter(&endpoint) {
            app.tasks.spawn(first_tries(app.clone(), endpoint, busy));
        }
    }
    let mut next: Option<Millis> = None;
    for (delivery, due) in agains {
        if due > now {
            next = Some(next.map_or(due, |next| next.min(due)));
        } else if let Some(busy) = lanes.enter(&delivery) {
            app.tasks.spawn(further_try(app.clone(), delivery, busy));
        }
    }
    Ok(next)
}

/// First tries of one endpoint, until there are no more.
async fn first_tries(app: Arc<App>, endpoint: String, _busy: Busy) {
    loop {
        let next = app.read(|tx| deliveries::next_first(tx, &endpoint));
        if !carry_on(&app, next).await {
            return;
        }
    }
}

/// One more try of one delivery.
async fn further_try(app: Arc<App>, key: String, _busy: Busy) {
    // It was found due before the lane was taken: the try that had it until then may have settled it.
    let is_due =
        |it: &Delivery| it.progress == Progress::Pending && it.due_at.is_some_and(|at| at <= app.now());
    let delivery = app.read(|tx| Ok::<_, StoreError>(typed::get::<Delivery>(tx, &key)?.filter(is_due)));
    carry_on(&app, delivery).await;
}

/// Tries a delivery, if there is one; says whether to go on.
async fn carry_on(app: &Arc<App>, delivery: Result<Option<Delivery>, StoreError>) -> bool {
    let tried = match delivery {
        Ok(Some(delivery)) => attempt::attempt(app, delivery).await,
        Ok(None) => return false,
        Err(error) => Err(error),
    };
    match tried {
        Ok(goes_on) => goes_on,
        Err(error) => {
            tracing::error!(%error, "a delivery could not be carried out");
            app.sleep(REST).await;
            false
        }
    }
}

/// Takes away what is older than the history goes back.
fn prune(app: &App) {
    let pruned = app.read(|tx| deliveries::has_too_old(tx, app.now())).and_then(|mut goes_on| {
        while goes_on {
            goes_on = app.write_later(|tx| deliveries::prune(tx, app.now()))?;
        }
        Ok(())
    });
    if let Err(error) = pruned {
        tracing::error!(%error, "old deliveries could not be taken away");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::Setting,
        world::{deliveries::Attempt, endpoints::Endpoint, happenings::Kind},
    };

    #[tokio::test]
    async fn a_try_that_was_found_due_before_another_one_settled_it_is_not_made() {
        let set = Setting::new();
        let app = &set.app;
        let endpoint = Endpoint::new("a", None, "http://127.0.0.1:9/", vec![Kind::Ready], app.now());
        let failed = Attempt { at: app.now(), status: Some(500), problem: None };
        let mut delivery = Delivery {
            endpoint: endpoint.id.clone(),
            account: "a".into(),
            event: "evt_1".into(),
            kind: Kind::Ready,
            body: "{}".into(),
            created_at: app.now(),
            progress: Progress::Pending,
            due_at: None,
            attempts: Vec::new(),
        };
        let key = typed::Record::key(&delivery);
        let lanes = Arc::new(Lanes::default());
        let tried = async |delivery: &Delivery| {
            set.write(|tx| typed::put(tx, delivery));
            further_try(app.clone(), key.clone(), lanes.enter(&key).unwrap()).await;
            app.read(|tx| typed::get::<Delivery>(tx, &key)).unwrap().unwrap().attempts.len()
        };
        set.write(|tx| typed::put(tx, &endpoint));
        // Put off by a try that failed meanwhile.
        delivery.attempted(failed.clone(), app.now());
        assert_eq!(tried(&delivery).await, 1);
        // Acknowledged meanwhile.
        let mut done = delivery.clone();
        done.attempted(Attempt { status: Some(204), ..failed }, app.now());
        assert_eq!(tried(&done).await, 2);
        // Due, and nobody is there.
        delivery.due_at = Some(app.now());
        assert_eq!(tried(&delivery).await, 2);
    }
}
