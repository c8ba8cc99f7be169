// Package resources bounds what the process has, and all clients and clusters share.
//
//   - [Memory] is how many bytes the process keeps on behalf of clients: bodies of requests, and
//     messages that are not complete yet. There is one bound, as there is one heap. Callers take
//     bytes as they arrive, never when a client announces them: an announcement costs a client
//     nothing. A caller that gets none must go on without keeping the bytes, or reject the request.
//   - [FitOpenFiles] lowers the caps on connections and requests of a configuration to what the limit
//     on open files allows: a process without file descriptors can neither accept nor open connections.
//   - [Users] counts the users of a resource that is closed when the last of them has left.
package resources
