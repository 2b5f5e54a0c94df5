//! What other dialects of the API call otherwise: the server answers to every name, whoever uses it.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderName};
use sandboxer::dialects::Dialect;

use crate::generated::router::{ROUTES, Route, Segment};

/// The routes that have another path somewhere.
pub(crate) fn routes() -> &'static [(Vec<Segment>, &'static Route)] {
    static FOUND: OnceLock<Vec<(Vec<Segment>, &'static Route)>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let paths = Dialect::ALL.iter().flat_map(|dialect| dialect.info().paths);
        let known = paths.filter_map(|(operation, path)| {
            Some((segments(path), ROUTES.iter().find(|route| route.operation == *operation)?))
        });
        known.collect()
    })
}

fn segments(path: &'static str) -> Vec<Segment> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let segment = |part: &'static str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => Segment::Parameter(name),
        None => Segment::Literal(part),
    };
    parts.map(segment).collect()
}

/// The headers of a request, those of other dialects under this one's names, too.
pub(crate) fn headers(given: &HeaderMap) -> HeaderMap {
    let mut headers = given.clone();
    for (own, other) in Dialect::ALL.iter().flat_map(|dialect| dialect.info().headers) {
        if let Some(value) = given.get(*other)
            && !given.contains_key(*own)
        {
            headers.insert(HeaderName::from_static(own), value.clone());
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_name_leads_to_what_is_meant() {
        for dialect in Dialect::ALL {
            let info = dialect.info();
            for (operation, path) in info.paths {
                let method = operation.info().method.parse().unwrap();
                let path = path.replace(['{', '}'], "");
                assert_eq!(crate::router::operation(&method, &format!("/api/v1{path}")), Some(*operation));
            }
            for (own, other) in info.headers {
                let mut given = HeaderMap::new();
                given.insert(*other, "theirs".parse().unwrap());
                assert_eq!(headers(&given)[*own], "theirs");
                given.insert(*own, "ours".parse().unwrap());
                assert_eq!(headers(&given)[*own], "ours");
            }
        }
    }
}
