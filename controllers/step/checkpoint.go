package step

import "context"

// checkpoint lets a step have its facts in the status before it goes on.
type checkpoint struct {
	runner *Runner
	// before is the object as the API server has it.
	before, obj Object
	scope       Scope
}

type checkpointKey struct{}

// Checkpoint writes the facts recorded so far into the status, where they differ from what is there. A step calls it
// before it makes something that must not be forgotten if the process ends in the middle.
func Checkpoint(ctx context.Context) error {
	c, ok := ctx.Value(checkpointKey{}).(*checkpoint)
	if !ok {
		return nil
	}
	c.scope.Record()
	interim := c.obj.DeepCopyObject().(Object)
	interim.SetConditions(c.before.GetConditions())
	// The answer of the API server may be of a newer generation. It is not taken over: what is reported in the end is about the
	// generation this Reconcile began with.
	if err := c.runner.patch(ctx, c.before, interim.DeepCopyObject().(Object)); err != nil {
		return err
	}
	c.before = interim
	return nil
}
