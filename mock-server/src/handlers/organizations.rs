//! The wallets an account may use: its own and those of the organisations it is in.

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    auth,
    reply::{Answer, ApiError, Outcome},
    store::{Reader, typed},
    view::time_or_null,
    world::{
        accounts::{self, Account, Invite, Member, Organisation, PERSONAL, PERSONAL_NAME},
        ids,
        time::{Millis, iso},
    },
};

/// How many organisations an account may own. The service names no bound; without one, a key could fill the disk.
const MOST_OWNED: usize = 100;

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let account = &call.caller.account;
    app.read(|tx| {
        let active = accounts::active_organisation(tx, account)?;
        let mut shown = vec![json!({
            "id": PERSONAL,
            "name": PERSONAL_NAME,
            "type": "personal",
            "role": "owner",
            "memberCount": 1,
            "subscriptionStatus": null,
            "active": active.is_none(),
        })];
        for organisation in accounts::organisations_of(tx, &account.id)? {
            let is_active = active.as_ref().is_some_and(|active| active.id == organisation.id);
            shown.push(show(&organisation, account, is_active));
        }
        let body = json!({"activeWalletChosen": account.active_wallet.is_some(), "orgs": shown});
        Ok(Answer::ok("org.list", body))
    })
}

fn show(organisation: &Organisation, account: &Account, is_active: bool) -> Value {
    json!({
        "id": organisation.id,
        "name": organisation.name,
        "type": "org",
        "role": organisation.member(&account.id).map_or("member", |member| member.role.as_str()),
        "memberCount": organisation.members.len(),
        "subscriptionStatus": null,
        "active": is_active,
    })
}

pub(super) fn create(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    let name = call.text("name").unwrap_or_default().trim();
    if name.is_empty() {
        return Err(ApiError::invalid("invalid_name", "name", "must not be blank"));
    }
    if name.eq_ignore_ascii_case(PERSONAL) {
        return Err(ApiError::invalid("invalid_name", "name", "is what the account's own wallet is called"));
    }
    let shown = app.write(|tx| {
        let account = account(&*tx, &call.caller.account.id)?;
        let is_owner =
            |it: &Organisation| it.member(&account.id).is_some_and(|member| member.role == "owner");
        if accounts::organisations_of(&*tx, &account.id)?.iter().filter(|it| is_owner(it)).count()
            >= MOST_OWNED
        {
            let why = format!("the account owns {MOST_OWNED} organisations, the most it may");
            return Err(ApiError::new(409, "org_limit", why).retryable(false));
        }
        let organisation = Organisation {
            id: ids::new_organisation(),
            name: name.to_owned(),
            // Somebody who pays for little must not get more by founding an organisation.
            plan: account.plan.clone(),
            blocked: account.blocked,
            members: vec![Member {
                account: account.id.clone(),
                role: "owner".into(),
                max_active: None,
                joined_at: Some(now),
            }],
            invites: Vec::new(),
        };
        typed::put(tx, &organisation)?;
        Ok::<_, ApiError>(show(&organisation, &account, false))
    })?;
    Ok(Answer::new(201, "org.created", json!({"org": shown})))
}

/// The account as it is now: another call may have changed it since this one was let in.
fn account(tx: &dyn Reader, id: &str) -> Result<Account, ApiError> {
    typed::get(tx, id)?.ok_or_else(|| ApiError::new(401, "unauthorized", "the account is gone"))
}

pub(super) fn members(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.read(|tx| {
        let found: Option<Organisation> = typed::get(tx, call.id("orgId"))?;
        // Whoever is not in it does not hear that it exists.
        let organisation = found
            .filter(|organisation| organisation.member(&call.caller.account.id).is_some())
            .ok_or_else(|| ApiError::not_found("organisation"))?;
        let mut members = Vec::new();
        for member in &organisation.members {
            let known: Option<Account> = typed::get(tx, &member.account)?;
            members.push(show_member(member, known.as_ref()));
        }
        let invites: Vec<Value> =
            organisation.invites.iter().filter(|invite| is_open(invite, now)).map(show_invite).collect();
        Ok(Answer::ok("org.members", json!({"members": members, "invites": invites})))
    })
}

fn show_member(member: &Member, account: Option<&Account>) -> Value {
    json!({
        "id": member.account,
        "email": account.and_then(|account| account.email.clone()),
        "displayName": account.map(|account| account.display_name.as_ref().unwrap_or(&account.login)),
        "role": member.role,
        "joinedAt": time_or_null(member.joined_at),
        "capActiveSandboxes": member.max_active,
    })
}

fn is_open(invite: &Invite, now: Millis) -> bool {
    invite.expires_at.is_none_or(|at| at > now)
}

fn show_invite(invite: &Invite) -> Value {
    json!({
        "id": invite.id,
        "email": invite.email,
        "createdAt": iso(invite.created_at),
        "expiresAt": time_or_null(invite.expires_at),
    })
}

pub(super) fn set_active(app: &App, call: &Call) -> Outcome {
    let active = app.write(|tx| {
        let mut account = account(&*tx, &call.caller.account.id)?;
        let organisation = match call.text("org") {
            Some(named) => auth::organisation(&*tx, &account, named)?,
            None => None,
        };
        account.active_wallet =
            Some(organisation.as_ref().map_or(PERSONAL, |organisation| &organisation.id).to_owned());
        typed::put(tx, &account)?;
        Ok::<_, ApiError>(match organisation {
            Some(organisation) => json!({"id": organisation.id, "name": organisation.name, "type": "org"}),
            None => json!({"id": PERSONAL, "name": PERSONAL_NAME, "type": "personal"}),
        })
    })?;
    Ok(Answer::ok("org.active_updated", json!({"active": active})))
}
