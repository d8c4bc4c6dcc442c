package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Function is the name of Evaluate.
const Function = "tag"

// question is which of the tags a policy wants.
type question struct {
	Policy *v1alpha1.ImagePolicy
	Tags   []string
}

// choice is the tag, or that there is none with why.
type choice struct {
	Tag, None string
}

// Evaluate chooses a tag: it is the function of the process in which patterns are held against tags.
func Evaluate(input []byte, _ func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
	var q question
	if err := json.Unmarshal(input, &q); err != nil {
		return nil, fmt.Errorf("reading which tags to choose from: %w", err)
	}
	chooser, err := newTagChooser(q.Policy)
	if err != nil {
		return nil, err
	}
	note("policy.filterTags.pattern")
	tag, err := chooser.choose(context.Background(), q.Tags)
	if errors.Is(err, failure.ErrNoTag) {
		return json.Marshal(choice{None: err.Error()})
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(choice{Tag: tag})
}

// maxHere is what the pattern of a policy may cost in this process, in steps of its program: some milliseconds.
const maxHere = 1_000_000

// dear says whether the pattern is held against the tags in a process of its own.
func (c *tagChooser) dear(tags []string) bool {
	if c.filter == nil {
		return false
	}
	letters := 0
	for _, tag := range tags {
		letters += len(tag) + 1
	}
	return letters*c.steps > maxHere
}

// chosenApart is chooser.choose in a process of its own.
func (s *Store) chosenApart(ctx context.Context, ask *tagAsk, tags []string) (string, error) {
	input, err := json.Marshal(question{ask.chooser.of, tags})
	if err != nil {
		return "", fmt.Errorf("writing which tags to choose from: %w", err)
	}
	var answer []byte
	err = s.apart.InTurn(ctx, ask.tenant, func(ctx context.Context) (err error) {
		answer, err = s.apart.Do(ctx, apart.Call{Name: Function, Function: Evaluate, Tenant: ask.tenant, Input: [][]byte{input}})
		return err
	})
	var over apart.OverLimit
	switch {
	case errors.As(err, &over):
		return "", failure.New(failure.ErrTooLarge, "%s, held against %d tags: write one that costs less", over, len(tags))
	case err != nil:
		return "", fmt.Errorf("choosing a tag: %w", err)
	}
	var made choice
	if err := json.Unmarshal(answer, &made); err != nil {
		return "", fmt.Errorf("choosing a tag: %w", err)
	}
	if made.None != "" {
		return "", failure.New(failure.ErrNoTag, "%s", made.None)
	}
	return made.Tag, nil
}
