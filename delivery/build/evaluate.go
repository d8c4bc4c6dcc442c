package build

import (
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/decrypt/service"
	"github.com/kubeop/kubeop/delivery/message"
)

// These are the names of the functions in other processes: Evaluate builds sources without keys, and the function that Decrypting returns
// builds those with keys. That function is in another program.
const (
	Function = "build"
	Decrypts = "decrypt"
)

// Evaluate builds the objects of a source without keys. It is the function of the sandboxed process that reads the text of tenants. ask
// sends requests about files, note records which part is being read. Errors of the source are in the answer; an error of Evaluate means
// that the input is not one of this package.
func Evaluate(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
	return evaluate(input, ask, note, func(*Keys) (decrypt.Decrypter, error) { return nil, errProgram })
}

// maxOutdated is how many files a build reports that are not encrypted for the present key.
const maxOutdated = 100

var errProgram = errors.New("this program decrypts nothing")

// Decrypting returns an Evaluate that decrypts with the Decrypter that open returns.
func Decrypting(open Opener) apart.Function {
	return func(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
		through := service.Transport{Ask: func(request []byte) ([]byte, error) { return ask(append([]byte{askService}, request...)) }}
		return evaluate(input, ask, note, func(k *Keys) (decrypt.Decrypter, error) { return open(k.Secret, k.Data, through) })
	}
}

func evaluate(input []byte, ask func([]byte) ([]byte, error), note func(string), open func(*Keys) (decrypt.Decrypter, error)) ([]byte, error) {
	var o order
	if err := reader.Read(input, &o); err != nil {
		return nil, fmt.Errorf("reading what to build: %w", err)
	}
	made, err := safely(o.source(newRemoteFiles(ask, note)), note, open)
	out := outcome{}
	if err == nil {
		note("what is built")
		out.Objects, err = encoded(made.Objects)
		out.Outdated = made.Outdated[:min(len(made.Outdated), maxOutdated)]
	}
	if err != nil {
		out.Err = failureOf(err)
		out.Err.Kept = numbersIn(err)
	}
	for _, secret := range made.Secrets {
		out.Secrets = append(out.Secrets, []byte(secret))
	}
	return message.Write(out)
}

// safely turns a panic, which unusual manifests may cause, into an error. It leaves out the panic's value, which may contain a secret.
func safely(s *Source, note func(string), open func(*Keys) (decrypt.Decrypter, error)) (made Made, err error) {
	defer func() {
		if recover() != nil {
			made, err = Made{}, errors.New("these manifests cannot be built")
		}
	}()
	return s.make(note, open)
}
