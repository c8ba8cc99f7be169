package policyconf

// FillValue is Fill for types that only reflection knows.
var FillValue = fill
