// Package wire reads and writes messages of MongoDB as far as a proxy has to.
//
// A [Link] is one side of a connection. It has a buffer only while there is something in it. A [Frame] is the beginning
// of a message: of a command ([First]) or of its answer ([Judge]), compressed ones too. What is read
// shares the bytes of the message.
package wire
