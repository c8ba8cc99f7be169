package spillgrpc

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/seed90641741/spillway"
)

// methods are the methods that were found, by full name. Only methods of services that
// are linked into the program are kept, so that it cannot grow.
var methods sync.Map // string → *spillway.Call

// ClassifyByProto says of a method what its proto file does: with the option
//
//	option idempotency_level = NO_SIDE_EFFECTS;  // or IDEMPOTENT
//
// a call is retried even where it may have been processed. Of methods without it,
// and of those whose service is not linked into the program, nothing is known.
func ClassifyByProto(_ context.Context, method string) spillway.Call {
	if c, ok := methods.Load(method); ok {
		return *c.(*spillway.Call)
	}
	return classifyByProto(method)
}

func classifyByProto(method string) spillway.Call {
	c := spillway.Call{Key: method}
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return c
	}
	if options, ok := d.Options().(*descriptorpb.MethodOptions); ok {
		switch options.GetIdempotencyLevel() {
		case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
			c.Kind, c.Idempotent = spillway.KindRead, true
		case descriptorpb.MethodOptions_IDEMPOTENT:
			c.Kind, c.Idempotent = spillway.KindWrite, true
		default:
		}
		methods.Store(method, &c)
	}
	return c
}
