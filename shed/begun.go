package shed

// BegunTotal returns how many requests have been admitted since the start.
func (s *Shedder) BegunTotal() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.passed {
		n += s.passed[i].Load() + s.counts[i].AdmittedTotal
	}
	return n
}
