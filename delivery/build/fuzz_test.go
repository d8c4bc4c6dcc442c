package build

import (
	"errors"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/render"
)

// FuzzAnswer: whatever a process answers is read without harm, and its errors are no more than it may make of them.
func FuzzAnswer(f *testing.F) {
	kept := failureOf(errors.Join(errLater, render.ErrTooLarge))
	kept.Kept = []int{1, -1, 7}
	kept.Classes = append(kept.Classes, -1, 99)
	for _, seed := range []outcome{
		{Objects: [][]byte{[]byte(`{"apiVersion":"v1","a":[1,1.5,null]}`)}, Secrets: [][]byte{{0xff}}},
		{Err: kept}, {Objects: [][]byte{[]byte(`[]`), nil, []byte(`{"a":`)}},
	} {
		text, err := message.Write(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		answering := &answers{}
		answering.keep(errLater)
		made, err := answering.made(text)
		if err != nil && made.Objects != nil {
			t.Errorf("objects and %v", err)
		}
		for _, o := range made.Objects {
			if o.Object == nil {
				t.Error("an object of nothing")
			}
		}
	})
}

// FuzzOrder: whatever a process has to build, and whatever it reads of files, it ends with an answer or an error.
func FuzzOrder(f *testing.F) {
	source := git(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/a.yaml": manifest("a")}, v1alpha1.Build{})
	text, err := message.Write(orderOf(&source, (&answers{}).keep))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte{askFile, 'a'})
	f.Add([]byte{0xa0}, []byte{askFolder, '.'})
	f.Fuzz(func(t *testing.T, text, question []byte) {
		answering := &answers{files: source.Files}
		out, err := Evaluate(text, func(q []byte) ([]byte, error) { return answering.answer(t.Context(), q) }, func(string) {})
		if err == nil && len(out) == 0 {
			t.Error("no answer")
		}
		if answer, err := answering.answer(t.Context(), question); err == nil && len(answer) == 0 {
			t.Error("no answer to a question")
		}
		always := func([]byte) ([]byte, error) { return question, nil }
		if out, err := Evaluate(text, always, func(string) {}); err == nil && len(out) == 0 {
			t.Error("no answer after strange ones")
		}
	})
}
