package claims

import "github.com/seed90641741/spillway"

// Labels are the values of the field for the class that name one, by class. They are shared.
var Labels = func() (all [spillway.Criticalities][]string) {
	for i := range all {
		all[i] = []string{(spillway.Criticality(i) + spillway.Sheddable).String()}
	}
	return all
}()

// Restate makes f the fields with which a request is served: they say what was believed, which is nothing of its class if it is not
// labelled, and nothing of its level and progress if the level is 0. What was not believed must not be passed on to services that would
// believe it, by handlers that pass on everything that they have received. Restate reports whether f is another. The values are not
// changed.
func (f *Fields) Restate(class spillway.Criticality, labelled bool, level spillway.Level) (changed bool) {
	if len(f.Criticality) > 0 && !says(f.Criticality, class, labelled) {
		f.Criticality, changed = nil, true
		if labelled {
			f.Criticality = Labels[class.Index()]
		}
	}
	if level == 0 && len(f.Level)+len(f.Progress) > 0 {
		f.Level, f.Progress, changed = nil, nil, true
	}
	if len(f.Baggage) > 0 && HasBaggage(f.Baggage) {
		var other bool
		f.Baggage, other = ReplaceBaggage(f.Baggage, class, labelled, level)
		changed = changed || other
	}
	return changed
}

// says reports whether a label says what was believed, and nothing else.
func says(label []string, class spillway.Criticality, labelled bool) bool {
	if !labelled || len(label) > 1 {
		return false
	}
	c, ok := named(label[0])
	return ok && c == class
}
