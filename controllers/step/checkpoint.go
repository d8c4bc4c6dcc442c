package step

import "context"

// checkpoint lets a step write its facts into the status before the step goes on.
type checkpoint struct {
	runner *Runner
	// before is the object as it is in the API server.
	before, obj Object
	scope       Scope
}

type checkpointKey struct{}

// Checkpoint writes the recorded facts into the status, if they changed. A step calls Checkpoint before it creates something that must not
// be forgotten if the process is killed.
func Checkpoint(ctx context.Context) error {
	c, ok := ctx.Value(checkpointKey{}).(*checkpoint)
	if !ok {
		return nil
	}
	c.scope.Record()
	interim := c.obj.DeepCopyObject().(Object)
	interim.SetConditions(c.before.GetConditions())
	if err := c.runner.patch(ctx, c.before, interim); err != nil {
		return err
	}
	c.before = interim
	return nil
}
