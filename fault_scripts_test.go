package pawl

// Scripts is the text of every script by name, for a proxy to know their calls.
func Scripts() map[string]string {
	bodies := map[string]string{}
	for _, s := range []*script{scriptEnqueue, scriptLease, scriptSettle, scriptRetry, scriptBury, scriptExtend,
		scriptRelease, scriptProgress, scriptCancel, scriptRedrive, scriptDelete, scriptDeaths, scriptInspect, scriptStats, scriptWake, scriptStop, scriptCheck, scriptClaim, scriptMarks, scriptFinish, scriptTrim, scriptForget, scriptOver,
		scriptList, scriptPurge, scriptReschedule, scriptPause, scriptDestroy, scriptFree, scriptBeat, scriptMend, scriptUnpark, scriptWorkers, scriptMinutes,
		scriptSchedule, scriptSchedules, scriptTick} {
		bodies[s.name] = s.body
	}
	return bodies
}
