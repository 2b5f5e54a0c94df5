use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread::ThreadId,
};

use super::*;

fn answer(driver: &Driver) -> u32 {
    driver.run(async { Ok(tokio::task::spawn(async { 42 }).await.unwrap()) }).unwrap()
}

fn thread_of(driver: &Driver) -> ThreadId {
    driver.wait(async { thread::current().id() }).unwrap()
}

/// Says on a channel when it is dropped, and whether a runtime was around.
struct Tell(mpsc::Sender<bool>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.send(Handle::try_current().is_ok());
    }
}

#[test]
fn nothing_is_started_before_the_first_call_and_clones_share_one_thread() {
    let driver = Driver::default();
    assert_eq!(format!("{driver:?}"), "Driver { started: false }");
    let clone = driver.clone();
    assert_eq!(thread_of(&driver), thread_of(&clone));
    assert_ne!(thread_of(&driver), thread::current().id());
    assert_ne!(thread_of(&driver), thread_of(&Driver::default()));
}

#[test]
fn many_threads_may_make_the_first_call_at_once() {
    let driver = Driver::default();
    let threads: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| thread_of(&driver))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(threads.iter().all(|thread| *thread == threads[0]));
}

#[test]
fn it_works_inside_every_kind_of_runtime() {
    let shared = Driver::default();
    let call = || {
        assert_eq!(answer(&shared), 42);
        assert_eq!(answer(&Driver::default()), 42); // made, used and dropped here
    };
    let many = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    many.block_on(async { call() });
    many.block_on(async {
        let driver = shared.clone();
        assert_eq!(tokio::spawn(async move { answer(&driver) }).await.unwrap(), 42);
        let driver = shared.clone();
        assert_eq!(tokio::task::spawn_blocking(move || answer(&driver)).await.unwrap(), 42);
    });
    let one = Builder::new_current_thread().build().unwrap();
    one.block_on(async { call() });
    tokio::task::LocalSet::new().block_on(&one, async {
        let driver = shared.clone();
        assert_eq!(tokio::task::spawn_local(async move { answer(&driver) }).await.unwrap(), 42);
    });
}

#[test]
fn it_works_in_drop_while_unwinding_and_in_thread_teardown() {
    struct Calls(Driver, Arc<AtomicUsize>);
    impl Drop for Calls {
        fn drop(&mut self) {
            assert_eq!(answer(&self.0), 42);
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let calls = || Calls(Driver::default(), count.clone());
    drop(calls());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _held = calls();
        panic!("on purpose");
    }));
    assert!(unwound.is_err());
    thread_local!(static HELD: std::cell::RefCell<Option<Calls>> = const { std::cell::RefCell::new(None) });
    let torn_down = calls();
    thread::spawn(move || HELD.set(Some(torn_down))).join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn a_panic_goes_on_in_the_caller_and_the_driver_lives_on() {
    let driver = Driver::default();
    let panic =
        catch_unwind(AssertUnwindSafe(|| driver.run::<(), _>(async { panic!("on purpose") }))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert_eq!(answer(&driver), 42);
}

#[test]
fn a_call_from_its_own_thread_is_refused() {
    let driver = Driver::default();
    let inner = driver.clone();
    let error = driver.wait(async move { inner.run(async { Ok(()) }) }).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, "would_deadlock"));
    // Another driver's thread is another matter.
    let other = Driver::default();
    assert_eq!(driver.wait(async move { answer(&other) }).unwrap(), 42);
}

#[test]
fn what_is_left_is_dropped_on_the_runtime_when_the_last_clone_goes() {
    let driver = Driver::default();
    let (tell, told) = mpsc::channel();
    let left = Tell(tell.clone());
    let task = async move {
        let _left = left;
        std::future::pending::<()>().await;
    };
    driver.wait(async { drop(tokio::spawn(task)) }).unwrap();
    driver.discard(Tell(tell));
    assert_eq!(told.recv(), Ok(true));
    assert!(told.try_recv().is_err());
    drop(driver);
    assert!(told.recv().is_ok(), "the task is dropped with its runtime");
}

#[test]
fn the_last_clone_may_die_on_its_own_thread() {
    let driver = Driver::default();
    let (tell, told) = mpsc::channel();
    let clone = driver.clone();
    let (go, gone) = oneshot::channel::<()>();
    let task = async move {
        let _ = gone.await;
        drop(clone);
        let _ = tell.send(());
    };
    driver.wait(async { drop(tokio::spawn(task)) }).unwrap();
    drop(driver);
    go.send(()).unwrap();
    assert_eq!(told.recv(), Ok(()));
}
