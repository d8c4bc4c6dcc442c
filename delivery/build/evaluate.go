package build

import (
	"errors"
	"fmt"
)

// Function is the name of Evaluate.
const Function = "build"

// Evaluate makes the objects of a source: it is the function of the process in which what tenants wrote is read. Ask answers what it
// wants to know of files, note takes what is being read. What is wrong with the source is in the answer; an error says that the input
// is none of this package's.
func Evaluate(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
	var o order
	if err := unmarshal(input, &o); err != nil {
		return nil, fmt.Errorf("reading what to build: %w", err)
	}
	made, err := safely(o.source(newRemoteFiles(ask, note)), note)
	out := outcome{}
	if err == nil {
		note("what is built")
		out.Objects, err = encoded(made.Objects)
	}
	if err != nil {
		out.Err = failureOf(err)
		out.Err.Kept = numbersIn(err)
	}
	for _, secret := range made.Secrets {
		out.Secrets = append(out.Secrets, []byte(secret))
	}
	return marshal(out)
}

// safely makes an error of a panic that strange manifests cause. What it panicked with may hold a secret.
func safely(s *Source, note func(string)) (made Made, err error) {
	defer func() {
		if recover() != nil {
			made, err = Made{}, errors.New("these manifests cannot be built")
		}
	}()
	return s.make(note)
}
