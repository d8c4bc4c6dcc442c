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

// question says by which policy to choose among which tags.
type question struct {
	Policy *v1alpha1.ImagePolicy
	Tags   []string
}

// choice is the chosen tag, or why there is none.
type choice struct {
	Tag, None string
}

// Evaluate chooses a tag. It is the function of the sandboxed process that matches patterns against tags.
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

// maxCostHere is what a policy's pattern may cost in this process, in steps of its program: some milliseconds.
const maxCostHere = 1_000_000

// isExpensive reports whether matching the pattern is so expensive that it has to run in a process of its own.
func (c *tagChooser) isExpensive(tags []string) bool {
	if c.filter == nil {
		return false
	}
	letters := 0
	for _, tag := range tags {
		letters += len(tag) + 1
	}
	return letters*c.steps > maxCostHere
}

// chooseInProcess runs chooser.choose in a process of its own.
func (s *Store) chooseInProcess(ctx context.Context, ask *tagRequest, tags []string) (string, error) {
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
		return "", failure.New(failure.ErrTooLarge, "%s, held against %d tags: write one that costs less in Git", over, len(tags))
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
