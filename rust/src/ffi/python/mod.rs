//! Builtin functions for CPython. Python calls them without cffi. Such a call takes a tenth of the time of a call through cffi.
//!
//! `install` puts the functions into a dict. They never release the interpreter's lock, so only one thread at a time uses a reader. But
//! making an object may start a garbage collection, and the collection may run other code. If the other code uses the same reader, the
//! reader is *busy*, and msgspec decodes the line.

mod api;
mod feed;
mod object;
mod peek;
mod plan;
mod public;
mod split;
mod write;

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

use self::api::{api, keep_loaded, load, Buffer, Counting, Method, Pointer, Size};
use self::feed::Fall;
use self::object::{class_of, size, Object, Python, HEADER};
use crate::typed::{Line, Reader};

/// A reader, and the state that its functions share.
///
/// Other code that runs while the reader makes an object may call these functions again. So they have only shared references to the state,
/// and only [`with_reader`] makes a reference to `work`.
struct State {
    work: UnsafeCell<Work>,
    /// True while a caller uses `work`.
    is_busy: Cell<bool>,
    /// True after a call of `stop`. The reader then reads no more lines.
    is_stopped: Cell<bool>,
    /// True after a panic in the reader. The reader then reads no more lines.
    has_panicked: Cell<bool>,
    /// The number of the class whose fields Python must add to the plan before the reader can read the last line of `read_line`; -1 if this
    /// does not help.
    wanted: Cell<i64>,
}

/// A reader, and its results for the current chunk.
struct Work {
    reader: Reader<Python>,
    /// The messages of the current chunk, with `None` in place of each line in `falls`. Both lists are empty between calls.
    messages: Vec<Option<Object>>,
    falls: Vec<Fall>,
}

const READER: &CStr = c"claude_wire.reader";
const FEEDER: &CStr = c"claude_wire.feed";

/// The functions that [`install`] puts into the dict, except [`NEW_WRITER`].
static FUNCTIONS: [Method; 8] = [
    Method::takes_none(c"claim", claim),
    Method::takes_none(c"new_reader", new_reader),
    Method::takes_one(c"slots_of", slots_of),
    Method::takes_one(c"new_feed_method", public::new_feed_method),
    Method::takes_one(c"new_decode", public::new_decode),
    Method::takes_one(c"new_peek", peek::new_peek),
    Method::takes_one(c"lines_with_ends", split::lines_with_ends),
    Method::takes_one(c"bare_lines", split::bare_lines),
];

static NEW_WRITER: Method = Method::takes_one(c"new_writer", write::new_writer);

/// The functions of a reader, in the order in which `new_reader` returns them.
static READER_FUNCTIONS: [Method; 6] = [
    Method::takes_one(c"change_plan", change_plan),
    Method::takes_one(c"read_line", read_line),
    Method::takes_none(c"wanted", wanted),
    Method::takes_none(c"stop", stop),
    Method::takes_one(c"new_feed", new_feed),
    Method::takes_none(c"serve_decode", serve_decode),
];

/// Puts the functions into the Python dict at the address `dict`. Returns whether CPython's functions count references, which `by_functions`
/// asks for; `None` if the interpreter is not a known CPython, or if memory runs out.
///
/// # Safety
///
/// `dict` must be the address of a live dict of the interpreter of this process. This thread must not hold the interpreter's lock.
pub unsafe fn install(dict: u64, by_functions: bool) -> Option<bool> {
    // SAFETY: the lock is taken first. cffi has released it for this call.
    unsafe {
        let _lock = api::lock()?;
        if !(load(by_functions) && keep_loaded()) {
            return None;
        }
        #[allow(clippy::cast_possible_truncation)] // An address has 64 bits here.
        let dict = dict as usize as Pointer;
        let writer = write::can_read().then_some(&NEW_WRITER);
        let are_set = FUNCTIONS.iter().chain(writer).all(|method| {
            let function = builtin(method, None, None);
            function.is_some_and(|function| {
                (api().PyDict_SetItemString)(dict, method.name, function.pointer()) == 0
            })
        });
        if !are_set {
            (api().PyErr_Clear)();
        }
        are_set.then(|| api().counting == Counting::Functions)
    }
}

/// The number of the interpreter that uses the functions; -1 if none does.
static USER: AtomicI64 = AtomicI64::new(-1);

/// `claim()`: returns whether this interpreter may use the functions. In each process, only the first interpreter that asks may use them:
/// their static state has objects of this interpreter, and such objects must not reach another interpreter.
unsafe extern "C" fn claim(_: Pointer, _: Pointer) -> Pointer {
    // SAFETY: CPython calls this with the lock held, so there is a current interpreter.
    body(|| unsafe {
        let this = (api().PyInterpreterState_GetID)((api().PyInterpreterState_Get)());
        let user = USER.compare_exchange(-1, this, Ordering::Relaxed, Ordering::Relaxed);
        Some(bool(user.is_ok() || user == Err(this)))
    })
}

/// Runs the body of a function that Python calls. If the body panics, or returns `None` without an exception, the function raises a
/// `SystemError`.
fn body(run: impl FnOnce() -> Option<Object>) -> Pointer {
    let result = catch_unwind(AssertUnwindSafe(run)).ok().flatten();
    result.map_or_else(
        || {
            // SAFETY: see `api`.
            unsafe {
                if (api().PyErr_Occurred)().is_null() {
                    (api().PyErr_SetString)(
                        api().PyExc_SystemError.cast::<Pointer>().read(),
                        c"a bug in claude_wire".as_ptr(),
                    );
                }
            };
            null_mut()
        },
        Object::release,
    )
}

/// `new_reader()`: returns a tuple of the [`READER_FUNCTIONS`] of a new reader.
unsafe extern "C" fn new_reader(_: Pointer, _: Pointer) -> Pointer {
    body(|| {
        let work = Work {
            reader: Reader::new(Python::default()),
            messages: Vec::new(),
            falls: Vec::new(),
        };
        let state = State {
            work: UnsafeCell::new(work),
            is_busy: Cell::new(false),
            is_stopped: Cell::new(false),
            has_panicked: Cell::new(false),
            wanted: Cell::new(-1),
        };
        let capsule = capsule(state, READER, drop_reader)?;
        let functions = READER_FUNCTIONS.each_ref();
        let functions = functions.map(|method| builtin(method, Some(&capsule), None));
        tuple(functions.into_iter().collect::<Option<Vec<_>>>()?)
    })
}

/// Returns a capsule that owns a value. CPython calls `drop` with the capsule before it frees the capsule.
fn capsule<T>(
    value: T,
    name: &'static CStr,
    drop: unsafe extern "C" fn(Pointer),
) -> Option<Object> {
    let value = Box::into_raw(Box::new(value));
    // SAFETY: see `api`. If CPython made no capsule, it does not own the value.
    unsafe {
        let capsule = (api().PyCapsule_New)(value.cast(), name.as_ptr(), Some(drop));
        let capsule = Object::owned(capsule);
        if capsule.is_none() {
            std::mem::drop(Box::from_raw(value));
        }
        capsule
    }
}

/// Returns a new builtin function. CPython passes `bound` to it as the first pointer. `module` is the name of the function's module.
fn builtin(
    method: &'static Method,
    bound: Option<&Object>,
    module: Option<&Object>,
) -> Option<Object> {
    let [bound, module] = [bound, module].map(|object| object.map_or(null_mut(), Object::pointer));
    // SAFETY: see `api`. The function keeps both objects alive.
    unsafe { Object::owned((api().PyCFunction_NewEx)(method, bound, module)) }
}

/// Returns the address of a capsule's value. Raises an exception and returns null for a capsule with another name.
///
/// # Safety
///
/// `capsule` must be a live capsule. It must live as long as the value is used.
unsafe fn value_of<T>(capsule: Pointer, name: &'static CStr) -> *mut T {
    // SAFETY: see `api`.
    unsafe {
        if api().capsules_are_words {
            let words = capsule.cast::<*mut c_void>().add(HEADER);
            if words.add(1).read() == name.as_ptr().cast_mut().cast() {
                return words.read().cast();
            }
        }
        (api().PyCapsule_GetPointer)(capsule, name.as_ptr()).cast()
    }
}

/// Returns the state of a reader.
///
/// # Safety
///
/// The capsule must come from [`new_reader`], and must live for `'a`.
#[inline]
unsafe fn state_of<'a>(capsule: Pointer) -> &'a State {
    // SAFETY: the capsule owns a `State`, which lives as long as the capsule.
    unsafe { &*value_of(capsule, READER) }
}

unsafe extern "C" fn drop_reader(capsule: Pointer) {
    // SAFETY: CPython calls this once, for a capsule of `new_reader`.
    unsafe { drop(Box::from_raw(value_of::<State>(capsule, READER))) }
}

/// Calls `run` with the state's work. Calls `otherwise` instead if the reader is busy or stopped, or has panicked. A panic may leave the
/// reader in a wrong state, so the reader is not used again after a panic.
#[inline]
fn with_reader<T>(
    state: &State,
    otherwise: impl FnOnce() -> T,
    run: impl FnOnce(&mut Work) -> T,
) -> T {
    if state.is_busy.get() || state.is_stopped.get() || state.has_panicked.get() {
        return otherwise();
    }
    state.is_busy.set(true);
    // SAFETY: only this function makes a reference to the work, and `is_busy` admits one caller at a time.
    let result = catch_unwind(AssertUnwindSafe(|| run(unsafe { &mut *state.work.get() })));
    state.is_busy.set(false);
    result.unwrap_or_else(|_| {
        state.has_panicked.set(true);
        otherwise()
    })
}

/// `change_plan(additions)`: adds to the reader's plan and returns True. Returns False while the reader is in use.
unsafe extern "C" fn change_plan(capsule: Pointer, additions: Pointer) -> Pointer {
    // SAFETY: CPython calls this with the function's capsule and a live argument.
    body(|| unsafe {
        let in_use = || Some(bool(false));
        with_reader(state_of(capsule), in_use, |work| {
            let changed = plan::change(&mut work.reader, &Object::borrowed(additions));
            changed.map(|()| bool(true))
        })
    })
}

/// `read_line(line)`: returns the message of a line (bytes or str, with or without its LF), or None if msgspec must decode the line.
unsafe extern "C" fn read_line(capsule: Pointer, line: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe { Some(read_one(state_of(capsule), line).unwrap_or_else(none)) })
}

/// Reads one line, given as bytes or str, with or without its LF. Returns `None` if msgspec must decode the line.
///
/// # Safety
///
/// The object must be alive.
#[inline]
unsafe fn read_one(state: &State, line: Pointer) -> Option<Object> {
    let read = |work: &mut Work, line: &[u8]| {
        state.wanted.set(-1);
        match work.reader.one(line.strip_suffix(b"\n").unwrap_or(line)) {
            Line::Message(message, _) => return Some(message),
            Line::Wants(class) => state.wanted.set(number(class)),
            Line::FallsThrough => {}
        }
        None
    };
    // SAFETY: the caller guarantees that the object is alive.
    let read = |work: &mut Work| unsafe { with_line(line, |line| read(work, line)) };
    with_reader(state, || None, read)
}

/// `wanted()`: returns [`State::wanted`]; -2 if the reader has panicked.
unsafe extern "C" fn wanted(capsule: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let state = state_of(capsule);
        let wanted = state.wanted.replace(-1);
        int(if state.has_panicked.get() { -2 } else { wanted })
    })
}

/// `stop()`: from now on the reader reads no lines.
unsafe extern "C" fn stop(capsule: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        state_of(capsule).is_stopped.set(true);
        Some(none())
    })
}

/// The line buffer and the reader that a native `Decoder.feed` uses.
struct Feed {
    /// The handle of the line buffer.
    handle: u64,
    state: *const State,
    /// The capsule that owns `state`.
    _owner: Object,
}

/// `new_feed(handle)`: returns a capsule with a [`Feed`] of this reader and the line buffer with this handle.
unsafe extern "C" fn new_feed(capsule: Pointer, handle: Pointer) -> Pointer {
    // SAFETY: as above. Any number is a valid handle: `feed` looks it up in the table.
    body(|| unsafe {
        let feed = Feed {
            handle: (api().PyLong_AsUnsignedLongLong)(handle),
            state: state_of(capsule),
            _owner: Object::borrowed(capsule),
        };
        self::capsule(feed, FEEDER, drop_feed)
    })
}

unsafe extern "C" fn drop_feed(capsule: Pointer) {
    // SAFETY: CPython calls this once, for a capsule of `new_feed`.
    unsafe { drop(Box::from_raw(value_of::<Feed>(capsule, FEEDER))) }
}

/// `serve_decode()`: from now on the function `decode` uses this reader.
unsafe extern "C" fn serve_decode(capsule: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        public::serve_decode(Object::borrowed(capsule));
        Some(none())
    })
}

/// `slots_of((instance, words, values))`: returns, for each value, the index of the instance's word that holds the value; -1 if no word or
/// several words hold it. The instance has `words` words.
unsafe extern "C" fn slots_of(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument. The instance has as many words as the argument says.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let (instance, words) = (plan::item(&argument, 0)?, plan::index_at(&argument, 1)?);
        let slot_of = |value: Object| {
            let mut found = (HEADER..words).filter(|&slot| *instance.slot(slot) == value.pointer());
            match (found.next(), found.next()) {
                (Some(slot), None) => int(number(slot)),
                _ => int(-1),
            }
        };
        let values = plan::items(&plan::item(&argument, 2)?)?;
        list(
            values
                .into_iter()
                .map(slot_of)
                .collect::<Option<Vec<_>>>()?,
        )
    })
}

// --- objects

#[inline]
fn none() -> Object {
    // SAFETY: `None` is always alive.
    unsafe { Object::borrowed(api()._Py_NoneStruct) }
}

#[inline]
fn bool(value: bool) -> Object {
    // SAFETY: True and False are always alive.
    unsafe {
        Object::borrowed(if value {
            api()._Py_TrueStruct
        } else {
            api()._Py_FalseStruct
        })
    }
}

#[allow(clippy::cast_possible_wrap)] // No length is above isize::MAX.
fn number(index: usize) -> i64 {
    index as i64
}

fn int(value: i64) -> Option<Object> {
    // SAFETY: see `api`.
    unsafe { Object::owned((api().PyLong_FromLongLong)(value)) }
}

fn tuple(items: impl IntoIterator<Item = Object, IntoIter: ExactSizeIterator>) -> Option<Object> {
    let items = items.into_iter();
    // SAFETY: see `api`. Each index is within the new tuple, which takes over the reference.
    unsafe {
        let tuple = Object::owned((api().PyTuple_New)(size(items.len())))?;
        for (index, item) in items.enumerate() {
            (api().PyTuple_SetItem)(tuple.pointer(), size(index), item.release());
        }
        Some(tuple)
    }
}

fn list(items: impl IntoIterator<Item = Object, IntoIter: ExactSizeIterator>) -> Option<Object> {
    let items = items.into_iter();
    // SAFETY: see `api`. Each index is within the new list, which takes over the reference.
    unsafe {
        let list = Object::owned((api().PyList_New)(size(items.len())))?;
        for (index, item) in items.enumerate() {
            (api().PyList_SetItem)(list.pointer(), size(index), item.release());
        }
        Some(list)
    }
}

/// Returns the contents of a `bytes` object; `None` for an object of any other class, including subclasses of `bytes`.
///
/// # Safety
///
/// `object` must be alive for `'a`.
#[inline]
unsafe fn bytes_of<'a>(object: Pointer) -> Option<&'a [u8]> {
    // SAFETY: see `api`. The contents of a `bytes` object do not change.
    unsafe {
        if class_of(object) != api().PyBytes_Type {
            return None;
        }
        let (data, len) = if let Some(at) = api().bytes {
            let len = object.cast::<Size>().add(HEADER).read();
            (object.cast::<u8>().add(at), len)
        } else {
            let (mut data, mut len) = (null_mut(), 0);
            (api().PyBytes_AsStringAndSize)(object, &raw mut data, &raw mut len);
            (data.cast(), len)
        };
        Some(std::slice::from_raw_parts(data, len.unsigned_abs()))
    }
}

/// A buffer of a Python object. Dropping the value releases the buffer, even after a panic.
struct Held(Buffer);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the buffer comes from `PyObject_GetBuffer`, and only this function releases it.
        unsafe { (api().PyBuffer_Release)(&raw mut self.0) }
    }
}

/// Calls `run` with the bytes of an object that has the buffer protocol. Raises an exception and returns `None` for any other object.
///
/// # Safety
///
/// `object` must be alive.
unsafe fn with_bytes<T>(object: Pointer, run: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut buffer = std::mem::MaybeUninit::<Buffer>::uninit();
    // SAFETY: see `api`. The bytes stay in memory until the buffer is released. The Python code that calls this function must not change
    // them during the call.
    unsafe {
        if (api().PyObject_GetBuffer)(object, buffer.as_mut_ptr(), 0) != 0 {
            return None;
        }
        let buffer = Held(buffer.assume_init());
        let data = match usize::try_from(buffer.0.len) {
            Ok(len) if len > 0 => std::slice::from_raw_parts(buffer.0.data, len),
            _ => &[],
        };
        Some(run(data))
    }
}

/// Calls `run` with the bytes of a line, given as bytes or str. Returns `None` without an exception for any other object, and for a str
/// with a surrogate.
///
/// # Safety
///
/// `line` must be alive.
#[inline]
unsafe fn with_line<T>(line: Pointer, run: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    // SAFETY: see `api`. The bytes live as long as `line`.
    unsafe {
        if let Some(line) = bytes_of(line) {
            return run(line);
        }
        let result = if class_of(line) == api().PyUnicode_Type {
            let mut len = 0;
            let data = (api().PyUnicode_AsUTF8AndSize)(line, &raw mut len).cast::<u8>();
            (!data.is_null()).then(|| run(std::slice::from_raw_parts(data, len.unsigned_abs())))
        } else {
            with_bytes(line, run)
        };
        if result.is_none() {
            (api().PyErr_Clear)();
        }
        result?
    }
}

const _: () = assert!(size_of::<*mut c_void>() == size_of::<usize>());
