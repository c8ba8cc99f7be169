package decisions

import (
	"context"
	"log/slog"
)

// library is what a Log knows of a program that uses the library.
type library struct {
	caller func(context.Context) string // nil: callers are not known
}

// NewLibrary returns an empty Log for a program that uses the library. Caller returns who sent the request of a context. Nil
// means that callers are not known.
func NewLibrary(logger *slog.Logger, caller func(context.Context) string) *Log {
	l := New(logger)
	l.library = &library{caller}
	return l
}

// callerOf returns the caller of a request, empty if it is not known. A func of the program that panics costs a name, and
// no request.
func (x *library) callerOf(ctx context.Context) (caller string) {
	if x.caller == nil || ctx == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			caller = ""
		}
	}()
	return x.caller(ctx)
}

const (
	topExplained = "ROUTE: the key of the route (routes[].key) if it has one, so routes that share a key have one row; otherwise its pattern.\n" +
		"CUSTOMER: by routes[].customer. " + NoCustomer + " are the requests without one, or without a route.\n"
	libraryTopExplained = "ROUTE: the key of the call: the route of a server, or the backend of a client.\n" +
		"CUSTOMER: the Customer of the call. CALLER: what Config.Caller of package spilladmin says; without it there are none.\n"
)
