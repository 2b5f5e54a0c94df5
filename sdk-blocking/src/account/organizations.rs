//! Organisations of the account, and which of them pays.

use sandboxer::{
    Result,
    models::{ActiveOrg, CreateOrganizationResponse, OrgListResponse, OrgMembersResponse},
};

use crate::Sandboxer;

/// The organisations of the account; comes from [`Sandboxer::organizations`](crate::Sandboxer::organizations).
///
/// An organisation pays for the sandboxes that its members create for it. It is named by its id, its name or
/// `personal`.
#[derive(Clone, Debug)]
pub struct Organizations {
    client: Sandboxer,
}

impl Sandboxer {
    /// The organisations of the account, and which of them pays.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let list = client.organizations().list()?;
    /// let active = list.orgs.iter().find(|org| org.active);
    /// assert_eq!(active.map(|org| org.id.as_str()), Some("personal"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn organizations(&self) -> Organizations {
        Organizations { client: self.clone() }
    }
}

impl Organizations {
    /// Lists what can pay: the personal account first, then every organisation.
    ///
    /// `active_wallet_chosen` is false for as long as none was ever chosen with [`set_active`](Self::set_active).
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let list = client.organizations().list()?;
    /// let active = list.orgs.iter().find(|org| org.active);
    /// assert_eq!(active.map(|org| org.id.as_str()), Some("personal"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self) -> Result<OrgListResponse> {
        self.client.call(|client| async move { client.organizations().list().await })
    }

    /// Creates an organisation, whose owner the caller becomes.
    ///
    /// It needs the action `account.admin`. A call that is cut off is not repeated, since it may have created it:
    /// look with [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, when `name` is not 1 to 100
    /// characters; `org_limit` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let created = client.organizations().create("acme")?;
    /// assert_eq!(created.org.map(|org| org.name).as_deref(), Some("acme"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create(&self, name: &str) -> Result<CreateOrganizationResponse> {
        let name = name.to_owned();
        self.client.call(|client| async move { client.organizations().create(&name).await })
    }

    /// Lists the members of an organisation, and who is invited.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when the key sees no organisation of that id; and the failures of
    /// any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let org_id = client.organizations().create("acme")?.org.expect("the new one").id;
    /// let people = client.organizations().members(&org_id)?;
    /// assert_eq!((people.members.len(), people.invites.len()), (1, 0));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn members(&self, org_id: &str) -> Result<OrgMembersResponse> {
        let org_id = org_id.to_owned();
        self.client.call(|client| async move { client.organizations().members(&org_id).await })
    }

    /// Chooses what pays for sandboxes that name no organisation, on every client of the account; `None` is the
    /// personal account.
    ///
    /// Sandboxes that exist keep what they have.
    ///
    /// # Errors
    ///
    /// `not_org_member` and `ambiguous_org`, a name that several organisations have, of the service; and the
    /// failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # client.organizations().create("acme")?;
    /// let active = client.organizations().set_active(Some("acme"))?;
    /// assert_eq!(active.name, "acme");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_active(&self, org: Option<&str>) -> Result<ActiveOrg> {
        let org = org.map(str::to_owned);
        self.client.call(|client| async move { client.organizations().set_active(org.as_deref()).await })
    }
}
