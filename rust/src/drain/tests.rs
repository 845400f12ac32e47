use std::os::fd::{AsFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_getfl, OFlags};
use rustix::io::Errno;
use rustix::pipe::pipe;

use super::state::Rescued;
use super::stream::Resumed;
use super::*;

/// Returns the bytes `from` to `from + len` of a fixed sequence, so that a test can check each byte against its place in a stream.
pub fn bytes_from(from: usize, len: usize) -> Vec<u8> {
    (from..from + len)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect()
}

fn shared(limit: usize) -> &'static Shared {
    Box::leak(Box::new(Shared::new(limit, |body| {
        thread::Builder::new().spawn(body).map(drop)
    })))
}

fn drained(shared: &'static Shared, mode: Mode) -> (Drain, OwnedFd) {
    let (reader, writer) = pipe().unwrap();
    (Drain::new(shared, reader.as_fd(), mode).unwrap(), writer)
}

fn bytes(size: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..size).map(next).collect()
}

fn write_all(to: &OwnedFd, mut data: &[u8]) {
    while !data.is_empty() {
        data = &data[rustix::io::write(to, data).unwrap()..];
    }
}

fn until(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_readable(drain: &Drain, timeout: i64) -> bool {
    let guard = drain.0.state.lock().unwrap();
    let fd = guard.as_ref().unwrap().poll.try_clone().unwrap();
    drop(guard);
    let timeout = Timespec {
        tv_sec: timeout,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

/// Reads the stream to its end. Between reads, it waits for the drain's descriptor as a reader does.
fn read_to_end(drain: &Drain, mut after_read: impl FnMut()) -> Vec<u8> {
    let mut all = Vec::new();
    let mut out = vec![0; CHUNK];
    loop {
        match drain.read(&mut out).unwrap().0 {
            Got::Bytes(bytes) => all.extend_from_slice(&out[..bytes]),
            Got::Nothing => assert!(is_readable(drain, 30), "a wake-up was lost"),
            Got::Budget => {}
            Got::End => return all,
            Got::Failed(number) => panic!("{number}"),
        }
        after_read();
    }
}

#[test]
fn order_holds_while_reader_and_rescuer_race() {
    let data = bytes(8 << 20);
    let directory = std::env::temp_dir();
    for (mode, limit) in [
        (Mode::Pause, DEFAULT_LIMIT),
        (Mode::Pause, 300_000),
        (Mode::Pause, 1),
        (Mode::Error, 300_000),
        (Mode::Spill(u64::MAX, directory.clone()), 300_000),
        (Mode::Spill(100_000, directory.clone()), 300_000),
        (
            Mode::Spill(1 << 20, directory.join("nowhere at all")),
            300_000,
        ),
    ] {
        let shared = shared(limit);
        let (drain, writer) = drained(shared, mode.clone());
        thread::scope(|scope| {
            scope.spawn(|| {
                for (number, piece) in data.chunks(50_021).enumerate() {
                    write_all(&writer, piece);
                    if number % 20 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                drop(writer);
            });
            let mut reads = 0;
            let got = read_to_end(&drain, || {
                reads += 1;
                if reads == 60 {
                    // Half of the bytes are not written yet, so the rescuer finds some even if the system runs it late.
                    until(|| drain.stats().unwrap().rescued > 0);
                } else if reads % 60 == 0 {
                    thread::sleep(Duration::from_millis(40));
                }
            });
            assert!(got == data, "{mode:?} {limit}");
        });
        assert_eq!(shared.queued(), 0);
        let stats = drain.stats().unwrap();
        assert_eq!(stats.read, data.len() as u64);
        assert!(stats.rescued > 0, "{mode:?} {limit}: {stats:?}");
    }
}

#[test]
fn a_reader_that_waits_is_woken_by_a_rescue_and_not_by_nothing() {
    let (drain, writer) = drained(shared(DEFAULT_LIMIT), Mode::Pause);
    let mut out = [0; 100];
    for _ in 0..3 {
        assert!(!is_readable(&drain, 0));
        write_all(&writer, b"left unread");
        until(|| drain.stats().unwrap().queued == 11);
        assert!(is_readable(&drain, 0));
        assert_eq!(drain.read(&mut out[..5]).unwrap().0, Got::Bytes(5));
        assert!(is_readable(&drain, 0), "some of it is still there");
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(6));
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
    }
    drop(writer);
    for _ in 0..3 {
        assert!(is_readable(&drain, 30));
        assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
    }
}

#[test]
fn bytes_that_a_reader_keeps_leave_less_room_until_they_are_given_back() {
    let shared = shared(200_000);
    shared.add(150_000);
    let (drain, writer) = drained(shared, Mode::Pause);
    thread::scope(|scope| {
        scope.spawn(|| write_all(&writer, &bytes(150_000)));
        until(|| drain.stats().unwrap().paused);
        assert_eq!(shared.queued(), 200_000);
        assert_eq!(drain.stats().unwrap().queued, 50_000);
        shared.give_back_kept(100_000);
        until(|| drain.stats().unwrap().queued > 50_000);
        shared.give_back_kept(50_000);
        until(|| shared.queued() == 150_000);
    });
    drop(drain);
    assert_eq!(shared.queued(), 0);
}

#[test]
fn bytes_given_back_let_others_go_on() {
    let shared = shared(200_000);
    let (first, first_writer) = drained(shared, Mode::Pause);
    let (second, second_writer) = drained(shared, Mode::Error);
    thread::scope(|scope| {
        scope.spawn(|| write_all(&first_writer, &bytes(260_000)));
        until(|| first.stats().unwrap().paused);
        assert_eq!(shared.queued(), 200_000);
        write_all(&second_writer, b"no room");
        until(|| second.stats().unwrap().paused);
        assert!(is_readable(&second, 0));
        let mut out = [0; 100];
        assert_eq!(second.read(&mut out).unwrap().0, Got::Budget);
        assert_eq!(second.read(&mut out).unwrap().0, Got::Bytes(7));
        write_all(&second_writer, b"still none");
        first.discard().unwrap();
        until(|| second.stats().unwrap().queued == 10);
    });
    drop(second);
    assert_eq!(shared.queued(), 0);
}

#[test]
fn a_paused_stream_goes_on_at_half_of_the_budget_and_no_earlier() {
    let shared = shared(1000);
    let (drain, writer) = drained(shared, Mode::Pause);
    let mut out = [0; 1000];
    write_all(&writer, &[1; 1500]);
    until(|| drain.stats().unwrap().paused);
    assert_eq!(shared.queued(), 1000);
    assert_eq!(drain.read(&mut out[..499]).unwrap().0, Got::Bytes(499));
    assert!(drain.0.resume() == Resumed::NotYet);
    assert!(drain.stats().unwrap().paused);
    assert_eq!(drain.read(&mut out[..1]).unwrap().0, Got::Bytes(1));
    until(|| drain.stats().unwrap().queued == 1000);
}

#[test]
fn a_descriptor_that_need_not_be_read_is_out_of_the_rescuers_sight() {
    // An ended or paused descriptor stays readable. If it were still a member, it would wake the thread again and again.
    for mode in [Mode::Pause, Mode::Error, Mode::KeepLast(10)] {
        let (drain, writer) = drained(shared(DEFAULT_LIMIT), mode);
        let mut out = [0; 10];
        write_all(&writer, b"x");
        drop(writer);
        until(|| drain.read(&mut out).unwrap().0 == Got::End);
        assert_eq!(drain.0.rescuer.sees(), 0);
    }
    let (drain, writer) = drained(shared(10), Mode::Pause);
    write_all(&writer, &[1; 100]);
    until(|| drain.stats().unwrap().paused);
    assert_eq!(drain.0.rescuer.sees(), 0);
    drain.discard().unwrap();
    until(|| drain.stats().unwrap().discarded == 100);
    drop(writer);
    until(|| drain.read(&mut [0; 10]).unwrap().0 == Got::End);
    assert_eq!(drain.0.rescuer.sees(), 0);
}

#[test]
fn returning_enough_bytes_for_a_paused_stream_wakes_the_rescuer() {
    let shared = shared(1000);
    shared.stop(Duration::ZERO); // The test thread acts as the rescuer.
    shared.add(990);
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, &[2; 30]);
    let mut scratch = [0; 100];
    assert!(matches!(drain.0.take(&mut scratch), Rescued::Some(10)));
    assert!(!shared.give_back(490) && !drain.0.rescuer.kicked());
    shared.add(490);
    assert!(matches!(drain.0.take(&mut scratch), Rescued::Paused));
    assert!(!shared.give_back(499));
    assert!(shared.give_back(1));
    shared.give_back_kept(1);
    assert!(drain.0.rescuer.kicked());
    drop(drain);
    assert!(!shared.give_back(1), "no stream is paused");
}

#[test]
fn a_paused_stream_that_is_discarded_resumes_without_room() {
    let shared = shared(10);
    shared.stop(Duration::ZERO); // The test thread acts as the rescuer.
    shared.add(10);
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, &[1; 100]);
    let mut scratch = [0; 1000];
    assert!(matches!(drain.0.take(&mut scratch), Rescued::Paused));
    assert!(drain.0.resume() == Resumed::NotYet);
    assert!(!drain.0.rescuer.kicked());
    drain.discard().unwrap();
    assert!(drain.0.rescuer.kicked());
    assert!(drain.0.resume() == Resumed::Done);
    assert!(matches!(drain.0.take(&mut scratch), Rescued::Last(100)));
    assert_eq!(
        (shared.queued(), drain.stats().unwrap().discarded),
        (10, 100)
    );
}

#[test]
fn a_stream_that_ended_while_paused_is_not_resumed() {
    let shared = shared(10);
    shared.stop(Duration::ZERO); // The test thread acts as the rescuer.
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, &[1; 100]);
    drop(writer);
    let mut out = [0; 100];
    assert!(matches!(drain.0.take(&mut out), Rescued::Some(10)));
    assert!(matches!(drain.0.take(&mut out), Rescued::Paused));
    assert!(drain.stats().unwrap().paused);
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(10));
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(90));
    assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
    assert!(!drain.stats().unwrap().paused);
    assert!(drain.0.resume() == Resumed::Done);
    assert_eq!(drain.0.rescuer.sees(), 0);
}

#[test]
fn a_budget_error_wakes_a_reader_that_the_same_bytes_had_woken_before() {
    let shared = shared(10);
    shared.stop(Duration::ZERO); // The test thread acts as the rescuer.
    shared.add(10);
    let (drain, writer) = drained(shared, Mode::Error);
    let outer = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let edges = || {
        let mut events = Vec::with_capacity(4);
        let now = Timespec::default();
        epoll::wait(&outer, spare_capacity(&mut events), Some(&now)).unwrap()
    };
    drain
        .0
        .with(|state| {
            let data = epoll::EventData::new_u64(0);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&outer, &state.poll, data, flags).unwrap();
        })
        .unwrap();
    assert_eq!(edges(), 0);
    write_all(&writer, b"x");
    assert_eq!((edges(), edges()), (1, 0));
    assert!(matches!(drain.0.take(&mut vec![0; CHUNK]), Rescued::Paused));
    assert_eq!(edges(), 1);
    let mut out = [0; 10];
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Budget);
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(1));
}

#[test]
fn a_higher_limit_lets_a_stream_go_on() {
    let shared = shared(10);
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, &[1; 100]);
    until(|| drain.stats().unwrap().paused);
    shared.set_limit(1000);
    until(|| drain.stats().unwrap().queued == 100);
    assert_eq!((shared.limit(), shared.queued()), (1000, 100));
}

#[test]
fn a_change_of_the_limit_wakes_the_rescuer() {
    let shared = shared(10);
    shared.stop(Duration::ZERO); // Without the thread, nobody else reads the kick.
    let (drain, _writer) = drained(shared, Mode::Pause);
    assert!(!drain.0.rescuer.kicked());
    shared.set_limit(1000);
    assert!(drain.0.rescuer.kicked());
}

#[test]
fn nothing_of_a_discarding_drain_is_kept() {
    let shared = shared(DEFAULT_LIMIT);
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, b"queued");
    until(|| shared.queued() == 6);
    drain.discard().unwrap();
    drain.discard().unwrap();
    assert_eq!(shared.queued(), 0);
    write_all(&writer, &vec![0; 1 << 20]);
    drop(writer);
    assert!(is_readable(&drain, 30));
    assert_eq!(drain.read(&mut [0; 100]).unwrap().0, Got::End);
    assert_eq!(drain.stats().unwrap().discarded, (1 << 20) + 6);
}

#[test]
fn the_last_bytes_are_those_in_the_pipe_too() {
    let (drain, writer) = drained(shared(1), Mode::KeepLast(10));
    let mut out = [0; 20];
    for number in 0..100 {
        let line = format!("{number:05}");
        write_all(&writer, line.as_bytes());
        let got = drain.tail(&mut out).unwrap();
        assert!(out[..got].ends_with(line.as_bytes()));
        assert_eq!(got, if number == 0 { 5 } else { 10 });
    }
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
    let (other, _writer) = drained(shared(1), Mode::Pause);
    assert_eq!(other.tail(&mut out).unwrap(), 0);
}

#[test]
fn a_watched_descriptor_is_reported_once() {
    let (drain, writer) = drained(shared(DEFAULT_LIMIT), Mode::Pause);
    let (watched, other_end) = pipe().unwrap();
    let mut out = [0; 10];
    drain.watch(watched.as_fd()).unwrap().unwrap();
    let busy = drain.watch(writer.as_fd()).unwrap().unwrap_err();
    assert_eq!(busy.raw_os_error(), Some(Errno::BUSY.raw_os_error()));
    assert!(!is_readable(&drain, 0));
    drop(other_end);
    assert!(is_readable(&drain, 30));
    until(|| {
        drain.read(&mut out).unwrap()
            == (
                Got::Nothing,
                Notes {
                    watched: true,
                    paused: false,
                },
            )
    });
    assert!(!is_readable(&drain, 0));
    // Watch the same descriptor a second time.
    drain.watch(watched.as_fd()).unwrap().unwrap();
    until(|| drain.read(&mut out).unwrap().1.watched);
}

#[test]
fn a_panic_breaks_one_stream_and_no_other() {
    let shared = shared(DEFAULT_LIMIT);
    let (broken, broken_writer) = drained(shared, Mode::Pause);
    let (other, writer) = drained(shared, Mode::Pause);
    write_all(&broken_writer, b"queued");
    until(|| shared.queued() == 6);
    let panic = || broken.0.with(|_| panic!("provoked by a test"));
    assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
    assert_eq!(broken.read(&mut [0; 10]), Err(Broken));
    assert_eq!(broken.stats(), Err(Broken));
    write_all(&broken_writer, b"more");
    write_all(&writer, b"other");
    until(|| other.stats().unwrap().queued == 5);
    drop(broken);
    assert_eq!(shared.queued(), 5);
    assert_eq!(rustix::io::write(&broken_writer, b"x"), Err(Errno::PIPE));
}

#[test]
fn the_rescuer_ends_with_the_last_drain_and_another_begins() {
    let shared = shared(DEFAULT_LIMIT);
    for _ in 0..20 {
        let (first, writer) = drained(shared, Mode::Pause);
        let (second, _other_writer) = drained(shared, Mode::Pause);
        let rescuer = Arc::clone(&first.0.rescuer);
        assert!(Arc::ptr_eq(&rescuer, &second.0.rescuer));
        write_all(&writer, b"x");
        until(|| first.stats().unwrap().queued == 1);
        drop(first);
        assert!(!rescuer.stopped());
        drop(second);
        assert!(rescuer.stop(Some(Duration::from_secs(30))));
    }
    assert_eq!(shared.queued(), 0);
}

#[test]
fn after_a_stop_readers_read_for_themselves() {
    let shared = shared(DEFAULT_LIMIT);
    assert!(shared.stop(Duration::ZERO), "there is nothing to stop");
    let (drain, writer) = drained(shared, Mode::Pause);
    write_all(&writer, b"x");
    let mut out = [0; 10];
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(1));
    drain.discard().unwrap();
    write_all(&writer, b"y");
    assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
    drop(writer);
    assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
    let other = Shared::new(1, |_| Err(Errno::AGAIN.into()));
    let other: &'static Shared = Box::leak(Box::new(other));
    let (reader, writer) = pipe().unwrap();
    let error = Drain::new(other, reader.as_fd(), Mode::Pause)
        .err()
        .unwrap();
    assert_eq!(error.raw_os_error(), Some(Errno::AGAIN.raw_os_error()));
    assert!(!fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
    drop(reader);
    assert_eq!(rustix::io::write(&writer, b"x"), Err(Errno::PIPE));
}
