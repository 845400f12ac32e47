//! `Decoder.feed` and `decode`, as programs call them.
//!
//! Each stands in the place of a function of Python, which does what this one does not: it is called with the same arguments. A
//! function of Python around a native one would cost as much as reading a short line.

use std::cell::UnsafeCell;
use std::ffi::{c_int, CStr, CString};
use std::ptr::null_mut;

use super::api::{api, Method, Pointer, Size};
use super::feed::{self, Fed};
use super::object::{class_of, Object, HEADER};
use super::plan::{bytes_at, index_at, item};
use super::{
    body, bytes_of, value_of, with_bytes, with_reader, Feed, State, FEEDER, READER, TAKES_ONE,
};

/// The flags of a function that takes positional arguments in a row, and the names of others.
const TAKES_ANY: c_int = 0x80 | 0x02;

/// What such a function is.
pub type TakesAny = unsafe extern "C" fn(Pointer, *const Pointer, Size, Pointer) -> Pointer;

/// Says what a function is that takes any arguments. What is made of it keeps its address, so it lives for ever.
pub fn method(name: &'static CStr, function: TakesAny, doc: Vec<u8>) -> Option<&'static Method> {
    Some(Box::leak(Box::new(Method {
        name: name.as_ptr(),
        // SAFETY: the flags say which type it really has.
        function: unsafe {
            std::mem::transmute::<TakesAny, unsafe extern "C" fn(Pointer, Pointer) -> Pointer>(
                function,
            )
        },
        flags: TAKES_ANY,
        doc: CString::new(doc).ok()?.into_raw(),
    })))
}

/// What the functions know. There is one of each in a process: they need no object to find it in, and can be pickled by name.
struct Cell<T>(UnsafeCell<Option<T>>);

// SAFETY: it is used with the interpreter's lock held.
unsafe impl<T> Sync for Cell<T> {}

/// What `Decoder.feed` knows.
struct OfFeed {
    /// The word of a decoder with what `new_feed` has made for its line buffer; it has something else, or nothing, while others are
    /// to take what it is fed with.
    slot: usize,
    /// `Decoder.feed` in Python.
    fallback: Object,
    /// `Decoder._take`, for a chunk with lines that were not read.
    take: Object,
}

static FEED: Cell<OfFeed> = Cell(UnsafeCell::new(None));

/// What `decode` knows.
struct OfDecode {
    /// The capsule of the reader, once there is one.
    reader: Option<Object>,
    /// `decode` in Python.
    fallback: Object,
}

static DECODE: Cell<OfDecode> = Cell(UnsafeCell::new(None));

pub static NEW_FEED_METHOD: Method = Method {
    name: c"new_feed_method".as_ptr(),
    function: new_feed_method,
    flags: TAKES_ONE,
    doc: c"new_feed_method((class, slot, doc, feed, take)) -> the method `feed` of a class of decoders.".as_ptr(),
};

pub static NEW_DECODE: Method = Method {
    name: c"new_decode".as_ptr(),
    function: new_decode,
    flags: TAKES_ONE,
    doc: c"new_decode((decode, module, doc)) -> the function `decode`, which leaves everything to the other one until a reader serves it.".as_ptr(),
};

unsafe extern "C" fn new_feed_method(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with an argument that is alive.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let known = OfFeed {
            slot: index_at(&argument, 1).filter(|&slot| slot >= HEADER)?,
            fallback: item(&argument, 3)?,
            take: item(&argument, 4)?,
        };
        let method = method(c"feed", feed, bytes_at(&argument, 2)?)?;
        let class = item(&argument, 0)?;
        let made = Object::owned((api().PyDescr_NewMethod)(class.pointer(), method))?;
        replace(&FEED, known);
        Some(made)
    })
}

unsafe extern "C" fn new_decode(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let known = OfDecode {
            reader: None,
            fallback: item(&argument, 0)?,
        };
        let module = item(&argument, 1)?;
        let method = method(c"decode", decode, bytes_at(&argument, 2)?)?;
        let made = (api().PyCFunction_NewEx)(method, null_mut(), module.pointer());
        let made = Object::owned(made)?;
        replace(&DECODE, known);
        Some(made)
    })
}

/// Has `decode` use a reader, that of this capsule.
///
/// # Safety
///
/// The interpreter's lock is held.
pub unsafe fn serve_decode(capsule: Object) {
    // SAFETY: the caller promises it; what is freed may run other code, so that comes last.
    let before = unsafe { (*DECODE.0.get()).as_mut() }.map(|known| known.reader.replace(capsule));
    drop(before);
}

unsafe fn replace<T>(cell: &Cell<T>, value: T) {
    // SAFETY: as of the cell; what is freed may run other code, so that comes last.
    let before = unsafe { (*cell.0.get()).replace(value) };
    drop(before);
}

/// `decoder.feed(data)`.
unsafe extern "C" fn feed(
    decoder: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with an instance of the class, which has the slot, with so many arguments that are alive, and with those
    // that have names after them.
    unsafe {
        let Some(known) = (*FEED.0.get()).as_ref() else {
            return null_mut();
        };
        if count == 1 && names.is_null() {
            let feeder = *decoder.cast::<Pointer>().add(known.slot);
            match feed_one(feeder, *arguments) {
                Some(Fed::Messages(messages)) => return messages.release(),
                Some(Fed::Rest(read)) => {
                    let take = known.take.clone();
                    let given = [decoder, *arguments, read.pointer()];
                    return call(&take, given.as_ptr(), 3, null_mut());
                }
                Some(Fed::Nothing) => {}
                None => {
                    (api().PyErr_NoMemory)();
                    return null_mut();
                }
            }
        }
        let fallback = known.fallback.clone();
        let more = if names.is_null() {
            0
        } else {
            (api().PyTuple_Size)(names)
        };
        let others = (0..(count + more).unsigned_abs()).map(|index| *arguments.add(index));
        let given: Vec<Pointer> = std::iter::once(decoder).chain(others).collect();
        let count = 1 + count.unsigned_abs();
        call(&fallback, given.as_ptr(), count, names)
    }
}

/// Calls a function with `count` positional arguments, and after them those with names. Returns what it returns, or null.
///
/// `PyObject_Vectorcall` does the same, but CPython 3.10 exports no such function.
///
/// # Safety
///
/// `names` is null or a tuple, and there are as many arguments, all alive.
pub unsafe fn call(
    function: &Object,
    arguments: *const Pointer,
    count: usize,
    names: Pointer,
) -> Pointer {
    // SAFETY: see `api`; the caller promises the rest.
    unsafe {
        if names.is_null() {
            return (api().PyObject_VectorcallDict)(
                function.pointer(),
                arguments,
                count,
                null_mut(),
            );
        }
        let Some(named) = Object::owned((api().PyDict_New)()) else {
            return null_mut();
        };
        for index in 0..(api().PyTuple_Size)(names) {
            let name = (api().PyTuple_GetItem)(names, index);
            let value = *arguments.add(count + index.unsigned_abs());
            if (api().PyDict_SetItem)(named.pointer(), name, value) < 0 {
                return null_mut();
            }
        }
        (api().PyObject_VectorcallDict)(function.pointer(), arguments, count, named.pointer())
    }
}

/// Feeds a decoder natively, if that can be; `None` without memory.
///
/// # Safety
///
/// Both are alive, though `feeder` may be null.
#[inline]
unsafe fn feed_one(feeder: Pointer, chunk: Pointer) -> Option<Fed> {
    // SAFETY: the caller promises it; a capsule of this name has a `Feed`, which lives as long as it does.
    unsafe {
        if feeder.is_null() || class_of(feeder) != api().PyCapsule_Type {
            return Some(Fed::Nothing);
        }
        // Other threads may put something else in its place meanwhile.
        let feeder = Object::borrowed(feeder);
        let Feed { handle, reader, .. } = *value_of::<Feed>(feeder.pointer(), FEEDER);
        with_reader(
            reader,
            || Some(Fed::Nothing),
            |state| match bytes_of(chunk) {
                Some(data) => feed::feed(handle, state, data),
                None => {
                    with_bytes(chunk, |data| feed::feed(handle, state, data)).unwrap_or_else(|| {
                        // Who takes it otherwise says what is wrong with it.
                        (api().PyErr_Clear)();
                        Some(Fed::Nothing)
                    })
                }
            },
        )
    }
}

/// `decode(line)`.
unsafe extern "C" fn decode(
    _: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: as above.
    unsafe {
        let Some(OfDecode { reader, fallback }) = (*DECODE.0.get()).as_ref() else {
            return null_mut();
        };
        if let (Some(reader), 1, true) = (reader, count, names.is_null()) {
            let reader = reader.clone();
            let state = value_of::<State>(reader.pointer(), READER);
            let message = with_reader(state, || None, |state| super::read_one(state, *arguments));
            if let Some(message) = message {
                return message.release();
            }
        }
        let fallback = fallback.clone();
        call(&fallback, arguments, count.unsigned_abs(), names)
    }
}
