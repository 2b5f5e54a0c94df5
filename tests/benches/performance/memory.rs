//! How much memory a reader costs that is slower than the command it reads.

use std::time::Duration;

use sandboxer::{
    Create,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::RunnerKind;

use crate::{
    Effort, machine,
    peers::{runtime, server},
    streams::printing,
};

/// The reader rests this long after every MiB.
const REST: Duration = Duration::from_millis(5);

pub(crate) fn run(effort: Effort) {
    let Some(server) = server(RunnerKind::Process) else { return };
    let bytes = effort.pick(512_u64 << 20, 64 << 20);
    let runtime = runtime();
    let (seconds, growth) = runtime.block_on(async {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let clock = SystemClock::new();
        machine::reset_peak();
        let before = machine::resident();
        let begin = clock.elapsed();
        let mut run = sandbox.exec_stream(printing(bytes)).await.expect("a stream");
        let (mut seen, mut rested) = (0, 0);
        while let Some(chunk) = run.next().await {
            seen += chunk.expect("a chunk").bytes().len() as u64;
            if seen >> 20 > rested {
                rested = seen >> 20;
                clock.sleep(REST).await;
            }
        }
        assert_eq!(seen, bytes);
        let growth = machine::peak().zip(before).map(|(peak, before)| peak.saturating_sub(before));
        ((clock.elapsed() - begin).as_secs_f64(), growth)
    });
    let growth =
        growth.map_or("unknown here".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / 1_048_576.0));
    println!(
        "{} MiB read in {seconds:.1} s by a reader that rests {} ms after every MiB: client and server together grew by {growth} at the most.",
        bytes >> 20,
        REST.as_millis()
    );
}
