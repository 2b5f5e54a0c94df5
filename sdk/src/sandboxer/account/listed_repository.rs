//! A repository in its list.

use std::{ops::Deref, sync::Arc};

use crate::models::{Repository, RepositoryInstallation, SelectedRepository};

/// A repository in the list of those that the account's connection to GitHub sees; it is used like the
/// [`Repository`] itself.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
/// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
/// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
/// let app = client.repositories().list(Default::default()).next().await.unwrap()?;
/// assert_eq!(app.name.as_deref(), Some("app"));
/// assert_eq!(app.installation().account_login.as_deref(), Some("acme"));
/// assert!(app.selected().is_none());
/// let repository = app.repository().clone(); // for itself
/// # drop(repository);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRepository {
    repository: Repository,
    installation: Arc<RepositoryInstallation>,
    selected: Option<SelectedRepository>,
}

impl ListedRepository {
    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The account at GitHub it belongs to, without its repositories.
    pub fn installation(&self) -> &RepositoryInstallation {
        &self.installation
    }

    /// With which branch sandboxes start with it; `None` if they do not.
    pub fn selected(&self) -> Option<&SelectedRepository> {
        self.selected.as_ref()
    }
}

impl Deref for ListedRepository {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        &self.repository
    }
}

/// The repositories of a page, each with what the page says about it.
pub(super) fn listed(
    installations: Vec<RepositoryInstallation>,
    selected: &[SelectedRepository],
) -> Vec<ListedRepository> {
    let groups = installations.into_iter().flat_map(|mut installation| {
        let repositories = installation.repositories.take().unwrap_or_default();
        let installation = Arc::new(installation);
        repositories.into_iter().map(move |repository| (repository, installation.clone()))
    });
    let of = |repository: &Repository| {
        // A missing id is no id.
        let id = repository.database_id.as_ref()?;
        selected.iter().find(|selected| selected.database_id.as_ref() == Some(id)).cloned()
    };
    groups
        .map(|(repository, installation)| ListedRepository {
            selected: of(&repository),
            repository,
            installation,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repository_keeps_its_installation_and_its_selection() {
        let installations: Vec<RepositoryInstallation> = serde_json::from_value(json!([
            {"accountLogin": "acme", "repositories": [{"databaseId": "7", "name": "app"}, {"name": "bare"}]},
            {"accountLogin": "none"},
            {"accountLogin": "me", "repositories": [{"databaseId": "8", "name": "own"}]},
        ]))
        .unwrap();
        let selected: Vec<SelectedRepository> =
            serde_json::from_value(json!([{"databaseId": "8", "baseBranch": "dev"}, {"name": "bare"}]))
                .unwrap();
        let seen: Vec<_> = listed(installations, &selected)
            .into_iter()
            .map(|item| {
                assert!(item.installation().repositories.is_none());
                let branch = item.selected().and_then(|selected| selected.base_branch.clone());
                (item.installation().account_login.clone().unwrap(), item.name.clone().unwrap(), branch)
            })
            .collect();
        let expected = [
            ("acme".into(), "app".into(), None),
            ("acme".into(), "bare".into(), None),
            ("me".into(), "own".into(), Some("dev".to_owned())),
        ];
        assert_eq!(seen, expected);
    }
}
