//! Arrays are counted, shared and freed. MEMRT_LEAKS=fail lets the process fail if memory is left.

use memrt::{api, ffi, Array, Error};
use std::ffi::CStr;
use std::mem::{offset_of, size_of};

#[test]
fn table_is_the_table_of_the_header() {
    let table = api().unwrap();
    let version = unsafe { CStr::from_ptr(table.version) };
    assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
    assert_eq!(table.abi_major, ffi::ABI_MAJOR);
    assert!(table.struct_size > size_of::<ffi::Api>());
    assert_eq!(size_of::<ffi::MemInfo>(), 64);
    assert_eq!(offset_of!(ffi::MemInfo, flags), 52);
    assert_eq!(size_of::<ffi::NewOptions>(), 64);
}

#[test]
fn clones_share_the_elements() {
    let mut values = Array::<f64>::zeros(1000).unwrap();
    values.get_mut().unwrap()[999] = 7.0;
    let shared = values.clone();
    assert_eq!(
        (shared[999], shared.len(), shared.references()),
        (7.0, 1000, 2)
    );
    assert!(values.get_mut().is_none());
    drop(shared);
    assert!(values.get_mut().is_some());
}

#[test]
fn vector_is_adopted_without_a_copy() {
    let vector = vec![1_i32, 2, 3];
    let address = vector.as_ptr();
    let array = Array::from_vec(vector).unwrap();
    assert_eq!(array.as_ptr(), address);
    assert_eq!(array[..], [1, 2, 3]);
    assert!(Array::<u8>::from_vec(Vec::new()).unwrap().is_empty());
}

#[test]
fn last_reference_is_released_on_another_thread() {
    let array = Array::<u8>::from_vec(vec![5; 100]).unwrap();
    let other = array.clone();
    std::thread::spawn(move || assert_eq!(other[99], 5))
        .join()
        .unwrap();
    assert_eq!(array.references(), 1);
}

#[test]
fn reference_goes_to_c_and_back() {
    let raw = Array::<u16>::zeros(10).unwrap().into_raw();
    let table = api().unwrap();
    unsafe { (table.acquire)(raw.as_ptr()) };
    let array = unsafe { Array::<u16>::from_raw(raw) }.unwrap();
    assert_eq!(array.references(), 2);
    unsafe { (table.release)(raw.as_ptr()) };
    assert_eq!(array.references(), 1);
}

#[test]
fn refused_allocations_are_errors() {
    assert_eq!(
        Array::<f64>::zeros(1 << 50).err(),
        Some(Error::OutOfMemory(1 << 53))
    );
    assert_eq!(
        Array::<f64>::zeros(usize::MAX).err(),
        Some(Error::OutOfMemory(usize::MAX))
    );
    assert_eq!(Error::OutOfMemory(8).to_string(), "no memory for 8 bytes");
}
