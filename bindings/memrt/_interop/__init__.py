"""Arrays of other libraries, by Arrow and DLPack."""
