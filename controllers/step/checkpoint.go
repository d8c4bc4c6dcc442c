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
	conditions := c.obj.GetConditions()
	c.scope.Record()
	c.obj.SetConditions(c.before.GetConditions())
	err := c.runner.patch(ctx, c.before, c.obj)
	if err == nil {
		c.before = c.obj.DeepCopyObject().(Object)
	}
	c.obj.SetConditions(conditions)
	return err
}
