//! Stored environments, secrets and repositories.

use sandboxer::{
    EnvironmentUpdate, EnvironmentUpgrade, ListRepositories, ReplaceSecrets,
    models::{EnvironmentRepositoryRequest, SecretFileRequest, SelectRepositoryRequest},
};

use super::long;
use crate::builder_goldens_support::book::{Book, call, plain, refused};

#[tokio::test]
async fn environments() {
    let mut book = Book::open("environments").await;
    let client = book.client();
    let file = |path: &str| SecretFileRequest::new(path, "hush");

    book.section("EnvironmentUpdate");
    plain!(book, client.environments().update("e1", EnvironmentUpdate::new().name("ci")).await);
    call!(book, client.environments().update("e2", EnvironmentUpdate::new().name("ci")).await);
    call!(book, client.environments().update("e1", EnvironmentUpdate::new().make_default()).await);
    call!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().safe_for_third_parties(true)).await
    );
    call!(book, client.environments().update("e1", EnvironmentUpdate::new().pass_github(false)).await);
    call!(book, client.environments().update("e1", EnvironmentUpdate::new().pass_secrets(false)).await);
    call!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().pass_sandbox_credentials(false)).await
    );
    call!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().pass_agents_credentials(false)).await
    );
    call!(book, client.environments().update("e1", EnvironmentUpdate::new().env_contents("CI=1\n")).await);
    call!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().secret_files([file("a/key.pem")])).await
    );
    call!(book, client.environments().update("e1", EnvironmentUpdate::new().secret_files([])).await);
    call!(
        book,
        client
            .environments()
            .update("e1", EnvironmentUpdate::new().repositories([EnvironmentRepositoryRequest::new("r1")]))
            .await
    );
    refused!(book, client.environments().update("e1", EnvironmentUpdate::new()).await);
    refused!(book, client.environments().update("", EnvironmentUpdate::new().name("ci")).await);
    refused!(book, client.environments().update("e1", EnvironmentUpdate::new().name("")).await);
    refused!(book, client.environments().update("e1", EnvironmentUpdate::new().name("a b")).await);
    refused!(book, client.environments().update("e1", EnvironmentUpdate::new().name(long(65))).await);
    refused!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().env_contents(long(65_537))).await
    );
    refused!(
        book,
        client.environments().update("e1", EnvironmentUpdate::new().secret_files([file("/etc/key")])).await
    );
    refused!(
        book,
        client
            .environments()
            .update("e1", EnvironmentUpdate::new().secret_files([file("a/../../key")]))
            .await
    );
    refused!(
        book,
        client
            .environments()
            .update("e1", EnvironmentUpdate::new().secret_files([file("a"), file("a")]))
            .await
    );
    refused!(
        book,
        client
            .environments()
            .update("e1", EnvironmentUpdate::new().repositories([EnvironmentRepositoryRequest::new("")]))
            .await
    );

    book.section("Environments");
    plain!(book, client.environments().create("ci").await);
    call!(book, client.environments().create("other").await);
    plain!(book, client.environments().delete("e1").await);
    call!(book, client.environments().delete("e2").await);
    plain!(book, client.environments().upgrade("e1", EnvironmentUpgrade::all()).await);
    call!(book, client.environments().upgrade("e2", EnvironmentUpgrade::all()).await);
    call!(book, client.environments().upgrade("e1", EnvironmentUpgrade::only(["bx_1", "bx_2"])).await);
    call!(book, client.environments().upgrade("e1", EnvironmentUpgrade::only(Vec::<String>::new())).await);
    plain!(book, client.environments().set_var("e1", "CI", "1").await);
    call!(book, client.environments().set_var("e2", "CI", "1").await);
    call!(book, client.environments().set_var("e1", "DEBUG", "1").await);
    call!(book, client.environments().set_var("e1", "CI", "").await);
    plain!(book, client.environments().delete_var("e1", "CI").await);
    call!(book, client.environments().delete_var("e1", "DEBUG").await);
    plain!(book, client.environments().set_secret_file("e1", "a/key", "hush").await);
    call!(book, client.environments().set_secret_file("e1", "b/key", "hush").await);
    call!(book, client.environments().set_secret_file("e1", "a/key", "other").await);
    plain!(book, client.environments().delete_secret_file("e1", "a/key").await);
    call!(book, client.environments().delete_secret_file("e1", "b/key").await);
    plain!(book, client.environments().add_repo("e1", SelectRepositoryRequest::new("r1")).await);
    call!(
        book,
        client.environments().add_repo("e1", SelectRepositoryRequest::new("r1").base_branch("dev")).await
    );
    plain!(book, client.environments().delete_repo("e1", "r1").await);
    call!(book, client.environments().delete_repo("e1", "r2").await);

    book.section("Environments: refusals");
    refused!(book, client.environments().create("").await);
    refused!(book, client.environments().create("a/b").await);
    refused!(book, client.environments().create(&long(65)).await);
    refused!(book, client.environments().delete("..").await);
    refused!(book, client.environments().upgrade("", EnvironmentUpgrade::all()).await);
    refused!(book, client.environments().upgrade("e1", EnvironmentUpgrade::only([""])).await);
    refused!(book, client.environments().set_var("e1", "", "1").await);
    refused!(book, client.environments().set_var("e1", "9A", "1").await);
    refused!(book, client.environments().set_var("e1", "A-B", "1").await);
    refused!(book, client.environments().set_var("e1", &long(129), "1").await);
    refused!(book, client.environments().set_var("e1", "SANDBOXER_TOKEN", "1").await);
    refused!(book, client.environments().set_var("e1", "A", "hush\0").await);
    refused!(book, client.environments().set_var("e1", "A", long(65_537)).await);
    refused!(book, client.environments().delete_var("e1", "A-B").await);
    refused!(book, client.environments().set_secret_file("e1", "", "hush").await);
    refused!(book, client.environments().set_secret_file("e1", "/key", "hush").await);
    refused!(book, client.environments().set_secret_file("e1", "~/key", "hush").await);
    refused!(book, client.environments().set_secret_file("e1", "a/../key", "hush").await);
    refused!(book, client.environments().set_secret_file("e1", "a\0b", "hush").await);
    refused!(book, client.environments().set_secret_file("e1", &long(4097), "hush").await);
    refused!(book, client.environments().delete_secret_file("e1", "..").await);
    refused!(book, client.environments().add_repo("e1", SelectRepositoryRequest::new("")).await);
    refused!(
        book,
        client.environments().add_repo("e1", SelectRepositoryRequest::new("r1").base_branch("")).await
    );
    refused!(book, client.environments().delete_repo("e1", "").await);

    book.section("ReplaceSecrets");
    plain!(book, client.secrets().replace(ReplaceSecrets::new()).await);
    call!(book, client.secrets().replace(ReplaceSecrets::new().env_contents("TOKEN=hush\n")).await);
    call!(book, client.secrets().replace(ReplaceSecrets::new().file("config/key.pem", "hush")).await);
    refused!(book, client.secrets().replace(ReplaceSecrets::new().env_contents(long(65_537))).await);
    refused!(book, client.secrets().replace(ReplaceSecrets::new().file("", "hush")).await);
    refused!(book, client.secrets().replace(ReplaceSecrets::new().file("/key", "hush")).await);
    refused!(book, client.secrets().replace(ReplaceSecrets::new().file("..", "hush")).await);
    refused!(book, client.secrets().replace(ReplaceSecrets::new().file("a", "hush").file("a", "hush")).await);

    book.section("ListRepositories");
    plain!(book, client.repositories().list(ListRepositories::new()).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().sync()).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().search("app")).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().selected(true)).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().selected(false)).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().sort("asc")).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().limit(7)).collect().await);
    call!(book, client.repositories().list(ListRepositories::new().cursor("c1")).collect().await);
    plain!(book, client.repositories().select(SelectRepositoryRequest::new("r1")).await);
    call!(book, client.repositories().select(SelectRepositoryRequest::new("r1").base_branch("dev")).await);
    refused!(book, client.repositories().list(ListRepositories::new().search(long(201))).collect().await);
    refused!(book, client.repositories().list(ListRepositories::new().sort("")).collect().await);
    refused!(book, client.repositories().list(ListRepositories::new().cursor("")).collect().await);
    refused!(book, client.repositories().select(SelectRepositoryRequest::new("")).await);
    book.close();
}
