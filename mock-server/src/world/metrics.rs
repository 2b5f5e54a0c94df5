//! How busy sandboxes were: samples by the hour, and their averages by the day.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::{Deserialize, Serialize};

use super::time::{DAY, HOUR, Millis};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// How long samples are kept, in milliseconds.
const KEPT_FOR: Millis = 8 * DAY;

/// Figures are kept to a hundredth: twelve more digits of noise would be most of what is stored.
const HUNDREDTH: f64 = 100.0;

/// The load of a sandbox: processors, memory and disk in percent of all there is, and bytes a second read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) cpu: f64,
    pub(crate) mem: f64,
    pub(crate) disk: f64,
    pub(crate) io: f64,
}

/// How finely a curve is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grain {
    /// Every sample; one record an hour.
    Samples,
    /// An average an hour; one record a day.
    Hours,
}

impl Grain {
    fn as_str(self) -> &'static str {
        match self {
            Grain::Samples => "samples",
            Grain::Hours => "hours",
        }
    }

    /// The time that one record covers, and the time that one of its points does.
    fn spans(self) -> (Millis, Millis) {
        match self {
            Grain::Samples => (HOUR, 1),
            Grain::Hours => (DAY, HOUR),
        }
    }
}

/// When a stretch began, how many samples there are of it, and their sums.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point(Millis, u32, [f64; 4]);

/// A part of a sandbox's curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Curve {
    sandbox: String,
    grain: Grain,
    /// When it begins.
    from: Millis,
    points: Vec<Point>,
}

fn curve_key(sandbox: &str, grain: Grain, from: Millis) -> String {
    format!("{sandbox}/{}/{:016}", grain.as_str(), from.max(0))
}

impl Record for Curve {
    const TABLE: Table = Table::Metrics;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        curve_key(&self.sandbox, self.grain, self.from)
    }

    fn derive(&self, derived: &mut Derived) {
        derived.expires(self, self.from.saturating_add(self.grain.spans().0).saturating_add(KEPT_FOR));
    }
}

/// Adds a sample.
pub(crate) fn add(tx: &mut dyn Writer, sandbox: &str, at: Millis, load: Load) -> Result<(), StoreError> {
    let round = |value: f64| (value * HUNDREDTH).round() / HUNDREDTH;
    let figures = [load.cpu, load.mem, load.disk, load.io].map(round);
    for grain in [Grain::Samples, Grain::Hours] {
        let (span, step) = grain.spans();
        let from = at - at.rem_euclid(span);
        let mut curve = typed::get::<Curve>(&*tx, &curve_key(sandbox, grain, from))?
            .unwrap_or_else(|| Curve { sandbox: sandbox.to_owned(), grain, from, points: Vec::new() });
        let begin = at - at.rem_euclid(step);
        match curve.points.last_mut().filter(|last| last.0 == begin) {
            Some(Point(_, count, sums)) => {
                *count += 1;
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum = round(*sum + figure));
            }
            None => curve.points.push(Point(begin, 1, figures)),
        }
        typed::put(tx, &curve)?;
    }
    Ok(())
}

/// Forgets everything of a sandbox.
pub(crate) fn forget(tx: &mut dyn Writer, sandbox: &str) -> Result<(), StoreError> {
    typed::remove_all::<Curve>(tx, &format!("{sandbox}/"))
}

/// How much of a curve is shown, and how finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    grain: Grain,
    step: Millis,
    count: Millis,
}

impl Window {
    /// The window of a name: the whole curve, or at most 30 points of it.
    pub(crate) fn named(name: &str, is_coarse: bool) -> Self {
        let (length, fine, coarse) = match name {
            "1w" => (7 * DAY, (Grain::Hours, HOUR), (Grain::Hours, 6 * HOUR)),
            "24h" => (DAY, (Grain::Samples, HOUR / 6), (Grain::Hours, HOUR)),
            _ => (HOUR, (Grain::Samples, HOUR / 120), (Grain::Samples, HOUR / 30)),
        };
        let (grain, step) = if is_coarse { coarse } else { fine };
        Self { grain, step, count: length / step }
    }
}

/// The averages of every stretch of a window that has samples, oldest first; the last stretch is the one that goes on.
pub(crate) fn read(
    tx: &dyn Reader,
    sandbox: &str,
    window: Window,
    now: Millis,
) -> Result<Vec<(Millis, Load)>, StoreError> {
    let Window { grain, step, count } = window;
    let since = now - now.rem_euclid(step) - (count - 1) * step;
    let span = grain.spans().0;
    let first = curve_key(sandbox, grain, since - since.rem_euclid(span));
    let end = typed::after_prefix(&format!("{sandbox}/{}/", grain.as_str()));
    let mut stretches: BTreeMap<Millis, (u32, [f64; 4])> = BTreeMap::new();
    typed::scan::<Curve>(tx, &first, end.as_deref(), Order::Ascending, |_, curve| {
        for Point(at, samples, sums) in curve.points {
            if at >= since && at <= now {
                let (count, total) = stretches.entry(at - at.rem_euclid(step)).or_default();
                *count += samples;
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(stretches.into_iter().map(|(at, (count, sums))| (at, average(count, sums))).collect())
}

/// The newest sample.
pub(crate) fn newest(tx: &dyn Reader, sandbox: &str) -> Result<Option<(Millis, Load)>, StoreError> {
    let prefix = format!("{sandbox}/{}/", Grain::Samples.as_str());
    let mut found = None;
    let end = typed::after_prefix(&prefix);
    typed::scan::<Curve>(tx, &prefix, end.as_deref(), Order::Descending, |_, curve| {
        found = curve.points.last().map(|Point(at, count, sums)| (*at, average(*count, *sums)));
        ControlFlow::Break(())
    })?;
    Ok(found)
}

fn average(count: u32, sums: [f64; 4]) -> Load {
    let [cpu, mem, disk, io] =
        sums.map(|sum| (sum / f64::from(count.max(1)) * HUNDREDTH).round() / HUNDREDTH);
    Load { cpu, mem, disk, io }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    const NOON: Millis = 1_767_268_800_000;

    fn load(cpu: f64) -> Load {
        Load { cpu, mem: 2.0 * cpu, disk: 1.0, io: 1000.0 * cpu }
    }

    #[test]
    fn samples_are_averaged_over_the_stretches_of_a_window() {
        let store = RedbStore::in_memory().unwrap();
        let samples =
            [(-DAY, 90.0), (-40 * 60_000, 8.0), (-70_000, 1.0), (-31_000, 2.0), (-29_000, 3.0), (-1, 5.0)];
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            samples.iter().try_for_each(|(at, cpu)| add(tx, "bx_a", NOON + at, load(*cpu)))?;
            add(tx, "bx_ab", NOON, load(50.0))
        })
        .unwrap();
        let read = |name: &str, is_coarse: bool| {
            let window = Window::named(name, is_coarse);
            let points = typed::read::<_, StoreError>(&store, |tx| read(tx, "bx_a", window, NOON)).unwrap();
            points.into_iter().map(|(at, load)| (at - NOON, load.cpu)).collect::<Vec<_>>()
        };
        assert_eq!(read("1h", false), [(-40 * 60_000, 8.0), (-90_000, 1.0), (-60_000, 2.0), (-30_000, 4.0)]);
        assert_eq!(read("1h", true), [(-40 * 60_000, 8.0), (-120_000, 2.75)]);
        assert_eq!(read("24h", false), [(-40 * 60_000, 8.0), (-10 * 60_000, 2.75)]);
        assert_eq!(read("24h", true), [(-HOUR, 3.8)]);
        assert_eq!(read("1w", false), [(-DAY, 90.0), (-HOUR, 3.8)]);
        assert_eq!(read("1w", true), [(-DAY, 90.0), (-6 * HOUR, 3.8)]);
        let newest = typed::read::<_, StoreError>(&store, |tx| newest(tx, "bx_a")).unwrap();
        assert_eq!(newest, Some((NOON - 1, load(5.0))));
        for name in ["1h", "24h", "1w"] {
            assert!(Window::named(name, true).count <= 30, "{name}");
        }
        typed::write(&store, Durability::Now, |tx| forget(tx, "bx_a")).unwrap();
        assert_eq!(read("1w", false), []);
    }
}
