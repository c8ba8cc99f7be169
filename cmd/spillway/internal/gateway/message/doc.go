// Package message has what the proxy reads and changes of one HTTP request and its answer.
//
//   - Headers: which ones of a client reach the upstream ([Sanitize]), and the id of a request ([Identify]).
//   - The media type, which says whether an answer is a stream ([IsStream]).
//   - Bodies, which are buffered so that they can be sent again. Those of a known length are read
//     completely ([Account.ReadAhead]), others are buffered while they are streamed ([Replay]). The former
//     count against the process's memory limit for clients.
//   - The load report of an endpoint ([LoadReport]).
package message
