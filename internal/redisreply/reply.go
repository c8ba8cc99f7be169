// Package redisreply knows what the error answers of a Redis or Valkey server mean.
package redisreply

import (
	"strings"

	"github.com/seed90641741/spillway/fault"
)

// meanings has the error codes that say more than "the command failed". The code is the
// first word of an error answer.
var meanings = map[string]fault.Failure{
	// A script keeps the server from executing anything.
	"BUSY": {Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeTask},
	// It lacks memory for this command. The wait before a retry frees none.
	"OOM": {Overload: true, Safety: fault.RetryUnsafe, Party: fault.Server},
	// It is not short of anything, and has not executed the command: it starts, or looks for
	// its master.
	"LOADING":     {Safety: fault.RetrySafe, Party: fault.Server, Scope: fault.ScopeTask},
	"MASTERDOWN":  {Safety: fault.RetrySafe, Party: fault.Server, Scope: fault.ScopeTask},
	"CLUSTERDOWN": {Safety: fault.RetrySafe, Party: fault.Server},
	"TRYAGAIN":    {Safety: fault.RetrySafe, Party: fault.Server},
	"READONLY":    {Safety: fault.RetrySafe, Party: fault.Server},
	"NOREPLICAS":  {Safety: fault.RetrySafe, Party: fault.Server},
	// The client library sends the command to the node that the answer names.
	"MOVED": {Safety: fault.RetryUnsafe},
	"ASK":   {Safety: fault.RetryUnsafe},
}

// maxClients is the answer to a connection above maxclients. It has the code ERR of all errors
// without another, which rueidis removes.
const maxClients = "max number of clients reached"

// Meaning returns what the error answer text means. Of an answer with a code that is not
// in the table it says that a retry would get the same answer.
func Meaning(text string) fault.Failure {
	if strings.HasPrefix(strings.TrimPrefix(text, "ERR "), maxClients) {
		return fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeTask}
	}
	code, _, _ := strings.Cut(text, " ")
	if f, ok := meanings[code]; ok {
		return f
	}
	return fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Client}
}

// Redirect reports whether text names another node, or says that this one is a replica, so
// that the client library has to look for the right node.
func Redirect(text string) bool {
	code, _, _ := strings.Cut(text, " ")
	return code == "MOVED" || code == "ASK" || code == "READONLY"
}

// Worst returns the error that decides about n commands that were sent together, nil if there is
// none, and whether one of them was executed, so that they must not be sent again. A rejection
// for lack of capacity decides before any other error. answer returns the error of command i,
// nil for success, and what it means: a success that is Unprocessed, as that of MULTI, has
// executed nothing.
func Worst(n int, answer func(i int) (fault.Failure, error)) (executed bool, worst error) {
	overload := false
	for i := range n {
		f, err := answer(i)
		switch {
		case err == nil:
			executed = executed || !f.Unprocessed
		case worst == nil || f.Overload && !overload:
			worst, overload = err, f.Overload
		}
	}
	return executed, worst
}
