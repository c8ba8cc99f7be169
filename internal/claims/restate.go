package claims

import "github.com/seed90641741/spillway"

// Labels are the values of the field for the class that name one, by class. They are shared.
var Labels = func() (all [spillway.Criticalities][]string) {
	for i := range all {
		all[i] = []string{(spillway.Criticality(i) + spillway.Sheddable).String()}
	}
	return all
}()

// Restate returns the field for the class and the baggage with which a request is served that has label and baggage: they say
// what was believed of its class, which is nothing if it is not labelled. What was not believed must not be passed on to services
// that would believe it, by handlers that pass on everything that they have received. Restate reports whether one of the two is another.
// Neither may be changed.
func Restate(label, baggage []string, class spillway.Criticality, labelled bool) (newLabel, newBaggage []string, changed bool) {
	newLabel, newBaggage = label, baggage
	if len(label) > 0 && !says(label, class, labelled) {
		newLabel, changed = nil, true
		if labelled {
			newLabel = Labels[class.Index()]
		}
	}
	if len(baggage) > 0 && HasBaggage(baggage) {
		var other bool
		newBaggage, other = ReplaceBaggage(baggage, class, labelled)
		changed = changed || other
	}
	return newLabel, newBaggage, changed
}

// says reports whether a label says what was believed, and nothing else.
func says(label []string, class spillway.Criticality, labelled bool) bool {
	if !labelled || len(label) > 1 {
		return false
	}
	c, ok := named(label[0])
	return ok && c == class
}
