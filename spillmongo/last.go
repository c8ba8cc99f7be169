package spillmongo

import (
	"bytes"
	"context"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A lastError is a network error that the driver is not to retry. The driver asks
// twice whether it is context.Canceled before it does; the second time it is.
type lastError struct {
	error
	asked *atomic.Int32
}

func (e lastError) Unwrap() error { return e.error }

func (e lastError) Is(target error) bool { return target == context.Canceled && e.asked.Add(1) == 2 }

// relabel replaces one label by another.
func relabel(labels []string, from, to string) {
	for i := range labels {
		if labels[i] == from {
			labels[i] = to
		}
	}
}

// withLabel returns the answer wm, which has so many error labels, with one more of
// them. It repeats the label where their number would be a power of two: the slice
// that the driver makes of them would then have no room for another, and the driver,
// which adds one, would add it to a copy, out of reach of what [conn.Close] puts back.
func withLabel(wm []byte, label string, has int) []byte {
	m, err := parseMessage(wm)
	if err != nil {
		return wm
	}
	labels := bson.A{label}
	for n := has + 1; n&(n-1) == 0; n++ {
		labels = append(labels, label)
	}
	body := newDocument(len(m.body))
	elements, _ := m.body.Elements() // the body was validated
	for _, e := range elements {
		if old, ok := e.Value().ArrayOK(); ok && e.Key() == "errorLabels" {
			values, _ := old.Values()
			for _, v := range values {
				labels = append(labels, v)
			}
			continue
		}
		body = append(body, e...)
	}
	return m.withBody(bytes.Clone(wm), endDocument(appendValue(body, "errorLabels", labels)))
}
