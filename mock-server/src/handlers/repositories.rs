//! Repositories at GitHub, and which of them the default environment brings along.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{
    Call,
    environment_rules::{self as rules, Scope},
    environments::{show_repository, show_selected},
    paging::{read_cursor, write_cursor},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::{Order, Reader, typed},
    world::{
        environments,
        repositories::{Repository, key_of, of_account},
    },
};

/// How many repositories a page has if the call does not say.
const PAGE: usize = 100;

/// Refuses an account that has nothing at GitHub.
fn check_connected(tx: &dyn Reader, account: &str) -> Result<(), ApiError> {
    let mut is_connected = false;
    let prefix = of_account(account);
    let to = typed::after_prefix(&prefix);
    typed::scan::<Repository>(tx, &prefix, to.as_deref(), Order::Ascending, |_, _| {
        is_connected = true;
        ControlFlow::Break(())
    })?;
    match is_connected {
        true => Ok(()),
        false => Err(ApiError::new(409, "github_not_connected", "the account is not connected to GitHub")
            .retryable(false)),
    }
}

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let scope = Scope::of(call);
    let account = &call.caller.account.id;
    app.read(|tx| check_connected(tx, account))?;
    scope.prepare(app)?;
    let limit = call.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE);
    let order = if call.query("sort") == Some("asc") { Order::Ascending } else { Order::Descending };
    let wanted = call.query("q").map(str::to_lowercase);
    let only_selected = call.query("selected") == Some("true");
    app.read(|tx| {
        let environment = scope.default(tx, call)?;
        let latest = environments::latest(tx, &environment)?;
        let selected = &latest.contents.repositories;
        let is_wanted = |repository: &Repository| {
            wanted.as_ref().is_none_or(|wanted| repository.full_name.to_lowercase().contains(wanted))
                && (!only_selected || selected.iter().any(|it| it.repository.number == repository.number))
        };
        let (from, to) = bounds(account, call.query("cursor"), order);
        let mut page: Vec<Repository> = Vec::new();
        let mut has_more = false;
        typed::scan::<Repository>(tx, &from, to.as_deref(), order, |_, repository| {
            if !is_wanted(&repository) {
                return ControlFlow::Continue(());
            }
            has_more = page.len() == limit;
            if has_more {
                return ControlFlow::Break(());
            }
            page.push(repository);
            ControlFlow::Continue(())
        })?;
        let next = page.last().filter(|_| has_more).map(|last| write_cursor(0, &last.database_id()));
        Ok(Answer::ok(
            "repos.list",
            json!({
                "installations": by_installation(&page),
                "environmentId": latest.id,
                "subenvironmentId": environment.id,
                "selectedRepositories": show_selected(selected),
                "pageInfo": {"nextCursor": next, "hasMore": has_more, "limit": limit},
            }),
        ))
    })
}

/// The keys between which a page lies; a cursor that cannot be read is none.
fn bounds(account: &str, cursor: Option<&str>, order: Order) -> (String, Option<String>) {
    let prefix = of_account(account);
    let end = typed::after_prefix(&prefix);
    let place = cursor.and_then(read_cursor).and_then(|(_, id)| key_of(account, &id));
    match (place, order) {
        (None, _) => (prefix, end),
        (Some(key), Order::Ascending) => (format!("{key}\0"), end),
        (Some(key), Order::Descending) => (prefix, Some(key)),
    }
}

/// Repositories by the account at GitHub that they came with, each in the order of the page.
fn by_installation(page: &[Repository]) -> Vec<Value> {
    let mut groups: Vec<(&Repository, Vec<Value>)> = Vec::new();
    for repository in page {
        let shown = show_repository(repository);
        match groups.iter_mut().find(|(first, _)| first.installation == repository.installation) {
            Some((_, group)) => group.push(shown),
            None => groups.push((repository, vec![shown])),
        }
    }
    let show = |(first, repositories): (&Repository, Vec<Value>)| {
        json!({
            "type": first.installation_kind,
            "accountLogin": first.installation,
            "accountAvatarUrl": null,
            "repositories": repositories,
        })
    };
    groups.into_iter().map(show).collect()
}

pub(super) fn select(app: &App, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    app.read(|tx| check_connected(tx, &call.caller.account.id))?;
    scope.prepare(app)?;
    app.write(|tx| {
        let mut environment = scope.default(&*tx, call)?;
        let version =
            rules::change(tx, &mut environment, app.now(), |tx, contents| rules::select(tx, call, contents))?;
        Ok(Answer::ok(
            "repos.updated",
            json!({
                "success": true,
                "environmentId": version.id,
                "subenvironmentId": environment.id,
                "selectedRepositories": show_selected(&version.contents.repositories),
            }),
        ))
    })
}
