// Package query asks processes of Spillway for their state over their admin addresses.
//
// An answer is not trusted: its lists are bounded, and its texts are made of characters that take one column of a
// terminal, so that no name can move the cursor, change a color or hide another one. Package adminclient bounds it in
// time and size. The token for reading goes to the addresses that were given or found.
package query
